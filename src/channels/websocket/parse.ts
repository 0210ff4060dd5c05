/**
 * Client frame → intent, or a soft error; pure. It knows no connection and stores nothing. Invariant: a frame that is not
 * blank is answered, never dropped in silence. [CH-58..61]
 */
import { z } from "zod";
import type { SoftError, SoftErrorCode } from "./wire.js";

/** Longest content of a message, in UTF-8 bytes. */
export const MAX_CONTENT_BYTES = 65_536;
/** Longest id of a message, in UTF-16 units. */
const MAX_ID_LENGTH = 200;

/** What a client asks for. `chatId` null: the connection's default chat. `id` null: the client gave none. */
export type Intent =
  | { type: "nothing" }
  | { type: "ping" }
  | { type: "new_chat" }
  | { type: "attach"; chatId: string; after: number | null; epoch: number | null }
  | { type: "message"; chatId: string | null; id: string | null; content: string }
  | { type: "stop"; chatId: string };

export type Parsed = { ok: true; intent: Intent } | { ok: false; error: SoftError };

const chatIdShape = z.string().regex(/^[A-Za-z0-9_:-]{1,64}$/);
const place = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);
const attachFrame = z.object({ chat_id: chatIdShape, after: place.nullish(), epoch: place.nullish() });
const idShape = z.string().min(1).max(MAX_ID_LENGTH);
const stopFrame = z.object({ chat_id: chatIdShape });
const messageFrame = z.object({
  chat_id: chatIdShape,
  content: z.string().default(""),
  id: idShape.nullish(),
  // Clients of nanobot name their messages by it; only a hint, so a strange one is no error.
  turn_id: idShape.nullish().catch(null),
  media: z.array(z.unknown()).nullish(),
});

/** Reads one text frame. */
export function parseFrame(text: string): Parsed {
  if (text.trim() === "") return accepted({ type: "nothing" });
  const frame = jsonObject(text);
  if (frame === null) return untyped(text, null);
  switch (frame.type) {
    case "new_chat":
      return accepted({ type: "new_chat" });
    case "ping":
      return accepted({ type: "ping" });
    case "attach":
      return attach(frame);
    case "message":
      return message(frame);
    case "stop": {
      const read = stopFrame.safeParse(frame);
      return read.success
        ? accepted({ type: "stop", chatId: read.data.chat_id })
        : refused(codeOf(read.error), frame, read.error);
    }
    default:
      return typeof frame.type === "string"
        ? refused("unknown_type", frame, "Known types: new_chat, attach, message, stop, ping.")
        : loose(frame);
  }
}

/** How a frame named itself, for an error about it. */
export function namesIn(parsed: Parsed): { chat_id?: string; id?: string } {
  const { chat_id, id } = parsed.ok ? namesOf(parsed.intent) : parsed.error;
  return { ...(chat_id ? { chat_id } : {}), ...(id ? { id } : {}) };
}

function namesOf(intent: Intent): { chat_id?: string | null; id?: string | null } {
  return { chat_id: "chatId" in intent ? intent.chatId : null, id: "id" in intent ? intent.id : null };
}

function attach(frame: Record<string, unknown>): Parsed {
  const read = attachFrame.safeParse(frame);
  if (!read.success) return refused(codeOf(read.error), frame, read.error);
  const { chat_id, after, epoch } = read.data;
  return accepted({ type: "attach", chatId: chat_id, after: after ?? null, epoch: epoch ?? null });
}

function message(frame: Record<string, unknown>): Parsed {
  const read = messageFrame.safeParse(frame);
  if (!read.success) return refused(codeOf(read.error), frame, read.error);
  const { chat_id, content, id, turn_id, media } = read.data;
  if (media && media.length > 0) {
    return refused("media_unsupported", frame, "Files in messages are not supported yet; send text.");
  }
  const problem = contentProblem(content);
  if (problem !== null) return refused(problem.code, frame, problem.detail);
  return accepted({ type: "message", chatId: chat_id, id: id ?? turn_id ?? null, content });
}

/** Text, or an object with a text field, for the default chat: what clients without types send. */
function loose(frame: Record<string, unknown>): Parsed {
  const text = [frame.content, frame.text, frame.message].find((field) => typeof field === "string");
  const id = idShape.safeParse(frame.id).data ?? idShape.safeParse(frame.turn_id).data ?? null;
  if (typeof text === "string") return text.trim() === "" ? accepted({ type: "nothing" }) : untyped(text, id);
  return refused("bad_frame", frame, "Expected text, or an object with `type` or `content`.");
}

function untyped(content: string, id: string | null): Parsed {
  const problem = contentProblem(content);
  if (problem !== null) return { ok: false, error: { ...problem, ...(id === null ? {} : { id }) } };
  return accepted({ type: "message", chatId: null, id, content });
}

function contentProblem(content: string): { code: SoftErrorCode; detail: string } | null {
  if (content.trim() === "") return { code: "missing_content", detail: "A message needs content." };
  return Buffer.byteLength(content) > MAX_CONTENT_BYTES
    ? { code: "too_long", detail: `A message has at most ${MAX_CONTENT_BYTES} bytes of text.` }
    : null;
}

/** Null for whatever is not a JSON object: it is then text, also where it looks broken. */
function jsonObject(text: string): Record<string, unknown> | null {
  if (!text.trimStart().startsWith("{")) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function accepted(intent: Intent): Parsed {
  return { ok: true, intent };
}

function codeOf(error: z.ZodError): SoftErrorCode {
  return error.issues.some((issue) => issue.path[0] === "chat_id") ? "bad_chat_id" : "bad_frame";
}

/** Ids go back only in the shape in which they would have been taken. */
function refused(code: SoftErrorCode, frame: Record<string, unknown>, reason: string | z.ZodError): Parsed {
  const detail = typeof reason === "string" ? reason : (reason.issues[0]?.path.join(".") ?? "frame");
  const chatId = chatIdShape.safeParse(frame.chat_id);
  return {
    ok: false,
    error: {
      code,
      detail: typeof reason === "string" ? detail : `The field \`${detail}\` is missing or has the wrong shape.`,
      ...(chatId.success ? { chat_id: chatId.data } : {}),
      ...(typeof frame.id === "string" && frame.id.length <= MAX_ID_LENGTH ? { id: frame.id } : {}),
    },
  };
}
