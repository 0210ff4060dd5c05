/**
 * Judges the forms that a bot sends: messages, buttons, commands. Pure. Invariant: a form is taken whole or refused whole,
 * with every wrong field named.
 */
import { type FieldFault, Refusal } from "./refusal.js";

export const MAX_CONTENT = 2000;
const MAX_FILES = 10;

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const lengthOf = (value: unknown): number => (typeof value === "string" ? value.length : 0);

/** Throws unless the form is a message. `isNew`: it must show something. */
export function checkMessage(body: Json, files: number, isNew: boolean): void {
  const faults = [...contentFaults(body), ...nonceFaults(body), ...mentionFaults(body), ...embedFaults(body)];
  faults.push(...componentFaults(body.components));
  if (files > MAX_FILES)
    faults.push({ field: "attachments", code: "BASE_TYPE_MAX_LENGTH", message: "Must be 10 or fewer in length." });
  if (faults.length > 0) throw new Refusal(50035, faults);
  const shows = [body.embeds, body.components, body.sticker_ids].some((list) => listOf(list).length > 0) || files > 0;
  const text = typeof body.content === "string" ? body.content.trim() : "";
  if (!shows && text === "" && (isNew || "content" in body)) throw new Refusal(50006);
}

function contentFaults({ content }: Json): FieldFault[] {
  if (content === undefined || content === null) return [];
  if (typeof content !== "string")
    return [{ field: "content", code: "STRING_TYPE_CONVERT", message: "Could not interpret as string." }];
  if (content.length <= MAX_CONTENT) return [];
  return [{ field: "content", code: "BASE_TYPE_MAX_LENGTH", message: "Must be 2000 or fewer in length." }];
}

function nonceFaults({ nonce }: Json): FieldFault[] {
  if (nonce === undefined || nonce === null) return [];
  if (typeof nonce === "number" && Number.isSafeInteger(nonce)) return [];
  if (typeof nonce === "string" && nonce.length <= 25) return [];
  return [{ field: "nonce", code: "NONCE_TYPE_TOO_LONG", message: "Must be 25 or fewer in length." }];
}

function mentionFaults({ allowed_mentions: allowed }: Json): FieldFault[] {
  if (!isObject(allowed)) return [];
  const parse = listOf(allowed.parse);
  const isDouble = (["users", "roles"] as const).some(
    (kind) => parse.includes(kind) && listOf(allowed[kind]).length > 0,
  );
  if (!isDouble) return [];
  const message = "parse and an explicit list are mutually exclusive.";
  return [{ field: "allowed_mentions", code: "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", message }];
}

function embedFaults({ embeds }: Json): FieldFault[] {
  if (listOf(embeds).length <= 10) return [];
  return [{ field: "embeds", code: "BASE_TYPE_MAX_LENGTH", message: "Must be 10 or fewer in length." }];
}

function componentFaults(components: unknown): FieldFault[] {
  if (components === undefined || components === null) return [];
  if (!Array.isArray(components) || components.length > 5) return [tooMany("components", 5)];
  const seen = new Set<string>();
  return components.flatMap((row, at) => {
    const field = `components.${at}`;
    if (!isObject(row) || row.type !== 1)
      return [{ field: `${field}.type`, code: "UNION_TYPE_CHOICES", message: "Value must be 1." }];
    const buttons = listOf(row.components);
    if (buttons.length < 1 || buttons.length > 5) return [tooMany(`${field}.components`, 5)];
    return buttons.flatMap((button, column) => buttonFaults(button, `${field}.components.${column}`, seen));
  });
}

function tooMany(field: string, most: number): FieldFault {
  return { field, code: "BASE_TYPE_BAD_LENGTH", message: `Must be between 1 and ${most} in length.` };
}

function buttonFaults(button: unknown, field: string, seen: Set<string>): FieldFault[] {
  if (!isObject(button) || button.type !== 2)
    return [{ field: `${field}.type`, code: "UNION_TYPE_CHOICES", message: "Only buttons are known here." }];
  const { label, custom_id: id, style, emoji } = button;
  const faults: FieldFault[] = [];
  if (lengthOf(label) > 80)
    faults.push({ field: `${field}.label`, code: "BASE_TYPE_MAX_LENGTH", message: "Must be 80 or fewer in length." });
  if (lengthOf(label) === 0 && emoji === undefined)
    faults.push({
      field: `${field}.label`,
      code: "BUTTON_COMPONENT_INVALID",
      message: "A button must have a label or emoji.",
    });
  if (style === 5) return faults;
  if (typeof style !== "number" || style < 1 || style > 4)
    faults.push({ field: `${field}.style`, code: "BASE_TYPE_CHOICES", message: "Value must be one of 1 to 6." });
  if (lengthOf(id) < 1 || lengthOf(id) > 100)
    faults.push({
      field: `${field}.custom_id`,
      code: "BASE_TYPE_BAD_LENGTH",
      message: "Must be between 1 and 100 in length.",
    });
  if (seen.has(String(id)))
    faults.push({
      field: `${field}.custom_id`,
      code: "COMPONENT_CUSTOM_ID_DUPLICATED",
      message: "Component custom id cannot be duplicated",
    });
  seen.add(String(id));
  return faults;
}

/** Throws unless these are slash commands. */
export function checkCommands(body: unknown): Json[] {
  if (!Array.isArray(body) || body.length > 100) throw new Refusal(50035, [tooMany("commands", 100)]);
  const names = new Set<string>();
  const faults = body.flatMap((command, at) => commandFaults(command, String(at), names));
  if (faults.length > 0) throw new Refusal(50035, faults);
  return body as Json[];
}

function commandFaults(command: unknown, field: string, names: Set<string>): FieldFault[] {
  if (!isObject(command)) return [{ field, code: "DICT_TYPE_CONVERT", message: "Only dictionaries may be used." }];
  const { name, description, options } = command;
  const faults = namedFaults(command, field);
  if (names.has(String(name)))
    faults.push({
      field,
      code: "APPLICATION_COMMANDS_DUPLICATE_NAME",
      message: "Application command names must be unique",
    });
  names.add(String(name));
  if (description === undefined)
    faults.push({ field: `${field}.description`, code: "BASE_TYPE_REQUIRED", message: "This field is required" });
  if (listOf(options).length > 25) faults.push(tooMany(`${field}.options`, 25));
  listOf(options).forEach((option, at) => {
    if (isObject(option)) faults.push(...namedFaults(option, `${field}.options.${at}`));
  });
  return faults;
}

function namedFaults({ name, description }: Json, field: string): FieldFault[] {
  const isName = typeof name === "string" && /^[-_\p{L}\p{N}]{1,32}$/u.test(name) && name === name.toLowerCase();
  const faults: FieldFault[] = [];
  if (!isName)
    faults.push({
      field: `${field}.name`,
      code: "APPLICATION_COMMAND_INVALID_NAME",
      message: "Command name is invalid",
    });
  if (lengthOf(description) < 1 || lengthOf(description) > 100)
    faults.push({
      field: `${field}.description`,
      code: "BASE_TYPE_BAD_LENGTH",
      message: "Must be between 1 and 100 in length.",
    });
  return faults;
}
