/**
 * What a Discord message says, as text: its words with readable mentions, what it forwards, embeds, stickers. Pure. Files are
 * somebody else's. Invariant: whatever a person sees in the message is in the text or among the files.
 */
import type { WireBody, WireEmbed, WireUser } from "./wire.js";

/** Previews that Discord makes of links; their words are not the sender's. */
const PREVIEWS = ["link", "article", "image", "video", "gifv"];
const MOST_EMBEDS = 10;

/** The text of a message, without the mention of the bot that it begins with. */
export function contentOf(body: WireBody, selfId: string): string {
  const stickers = (body.sticker_items ?? []).map(({ name }) => `[sticker: ${name ?? "unnamed"}]`);
  const embeds = body.embeds.filter(({ type }) => !PREVIEWS.includes(type ?? "rich")).slice(0, MOST_EMBEDS);
  return joined([wordsOf(body, selfId), ...embeds.map(embedText), ...stickers], "\n\n");
}

/** A message that was forwarded, as text. */
export function forwardedText(body: WireBody, selfId: string): string {
  return joined(["[forwarded message]", contentOf(body, selfId)], "\n");
}

function wordsOf({ content, mentions }: WireBody, selfId: string): string {
  const names = new Map(mentions.map((user) => [user.id, nameOf(user)]));
  return content
    .replace(new RegExp(`^\\s*<@!?${selfId}>[\\s,:]*`), "")
    .replaceAll(/<@!?(\d{1,20})>/g, (whole, id: string) => (names.has(id) ? `@${names.get(id)}` : whole))
    .trim();
}

/** What people call a user. */
export function nameOf({ global_name, username, id }: WireUser): string {
  return [global_name, username].find((name) => typeof name === "string" && name !== "") ?? id;
}

function embedText({ author, title, url, description, fields, footer }: WireEmbed): string {
  const named = (fields ?? []).map(({ name, value }) => joined([name, value], ": "));
  return joined([author?.name, title, url, description, ...named, footer?.text], "\n");
}

function joined(pieces: ReadonlyArray<string | null | undefined>, by: string): string {
  return pieces.filter((piece) => typeof piece === "string" && piece.trim() !== "").join(by);
}
