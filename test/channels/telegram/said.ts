/** Updates as the platform words them, small, for tests that feed them in directly. */

export const ME = { id: 4242, username: "Nano_Gate_bot" };
export const ACCOUNT = "telegram:4242";
export const ANN = { id: 7, is_bot: false, first_name: "Ann", username: "ann" };
export const PRIVATE = { id: 7, type: "private", first_name: "Ann" } as const;
export const GROUP = { id: -50, type: "group", title: "Garden" } as const;
export const FORUM = { id: -10099, type: "supergroup", title: "Forum", is_forum: true } as const;
/** 2026-01-02T03:04:05Z */
export const DATE = 1_767_323_045;

/** A message of Ann's; what is given replaces the usual. */
export function said(more: Record<string, unknown>, chat: object = PRIVATE): Record<string, unknown> {
  return { message_id: 11, date: DATE, chat, from: ANN, ...more };
}

export function update(more: Record<string, unknown>, id = 1): { update_id: number; [kind: string]: unknown } {
  return { update_id: id, ...more };
}
