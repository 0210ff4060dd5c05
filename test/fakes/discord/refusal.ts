/**
 * How the fake Discord refuses: HTTP status, its own error code, its sentence, and for forms the fields that are wrong. It
 * decides nothing itself. Invariant: codes and sentences are those that Discord documents.
 */

const MEANINGS = {
  0: [401, "401: Unauthorized"],
  10003: [404, "Unknown Channel"],
  10004: [404, "Unknown Guild"],
  10008: [404, "Unknown Message"],
  10013: [404, "Unknown User"],
  10014: [400, "Unknown Emoji"],
  10015: [404, "Unknown Webhook"],
  10062: [404, "Unknown interaction"],
  20028: [429, "The write action you are performing on the channel has hit the write rate limit."],
  40005: [413, "Request entity too large"],
  40060: [400, "Interaction has already been acknowledged."],
  40333: [403, "internal network error"],
  50001: [403, "Missing Access"],
  50005: [403, "Cannot edit a message authored by another user"],
  50006: [400, "Cannot send an empty message"],
  50007: [403, "Cannot send messages to this user"],
  50008: [400, "Cannot send messages in a non-text channel"],
  50013: [403, "Missing Permissions"],
  50021: [400, "Cannot execute action on a system message"],
  50027: [401, "Invalid Webhook Token"],
  50035: [400, "Invalid Form Body"],
  50083: [400, "Thread is archived"],
  50109: [400, "The request body contains invalid JSON."],
  160005: [400, "Thread is locked"],
} as const satisfies Readonly<Record<number, readonly [status: number, message: string]>>;

export type RefusalCode = keyof typeof MEANINGS;

/** A field of a form that is wrong: where it is (`components.0.type`), Discord's name of the fault, its sentence. */
export interface FieldFault {
  field: string;
  code: string;
  message: string;
}

export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;

  constructor(
    readonly code: RefusalCode,
    readonly faults: readonly FieldFault[] = [],
  ) {
    super(MEANINGS[code][1]);
    this.status = MEANINGS[code][0];
  }

  /** As it goes over the wire. */
  get body(): Record<string, unknown> {
    const { code, message } = this;
    return this.faults.length === 0 ? { message, code } : { message, code, errors: tree(this.faults) };
  }
}

/** Refuses a form for one field. */
export function badField(field: string, code: string, message: string): Refusal {
  return new Refusal(50035, [{ field, code, message }]);
}

function tree(faults: readonly FieldFault[]): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const { field, code, message } of faults) {
    let node = root;
    for (const step of field.split(".")) {
      const next = (node[step] ?? {}) as Record<string, unknown>;
      node[step] = next;
      node = next;
    }
    node._errors = [{ code, message }];
  }
  return root;
}
