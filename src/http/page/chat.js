/**
 * What the page knows of its chat, as pure functions over frames: no DOM, no socket, no storage. Invariant: `seq` and
 * `entries` change together, so a stored state can be resumed with `after: seq` and shows nothing twice.
 */

/** Entries that are kept; older ones leave the page. */
const MAX_ENTRIES = 300;

/** A page that has no chat yet. `seq` null: not yet told where the chat stands. */
export function emptyState() {
  return { chatId: null, epoch: null, seq: null, entries: [], waiting: [], problem: null };
}

/** A state that was stored; null for what is not one. */
export function reviveState(text) {
  if (typeof text !== "string") return null;
  try {
    const value = JSON.parse(text);
    const isState = typeof value?.chatId === "string" && Array.isArray(value.entries) && Array.isArray(value.waiting);
    return isState ? { ...emptyState(), ...value, problem: null } : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** The frame that brings a connection to where this state stands. */
export function attachFrame({ chatId, epoch, seq }) {
  const place = seq === null ? {} : { after: seq, ...(epoch === null ? {} : { epoch }) };
  return { type: "attach", chat_id: chatId, ...place };
}

/** Messages that were written and not yet accepted; sent again under the same id they make one turn. */
export function unsentFrames({ chatId, entries }) {
  return entries
    .filter((entry) => entry.kind === "user" && entry.status === "sending")
    .map((entry) => ({ type: "message", chat_id: chatId, id: entry.key, content: entry.text }));
}

/** Adds a message of the user. */
export function withMessage(state, id, text) {
  return add(state, { kind: "user", key: id, text, status: "sending", remark: null });
}

/** True while an answer is awaited. */
export function isBusy(state) {
  return state.waiting.length > 0;
}

/**
 * Takes a frame in. `ask` says what the page must do besides showing: `attach` (a number is missing), `new_chat` (this
 * chat is another's), `retry` (the message with this id was not stored; again after `afterMs`).
 */
export function takeFrame(state, frame) {
  switch (frame.event) {
    case "ready":
      return only(state.chatId === null ? { ...state, chatId: frame.chat_id } : state);
    case "error":
      return refused(state, frame);
    default:
      if (frame.chat_id !== state.chatId) return only(state);
      return typeof frame.seq === "number" && !("epoch" in frame) ? numbered(state, frame) : answered(state, frame);
  }
}

function answered(state, frame) {
  switch (frame.event) {
    case "attached":
      return only({ ...state, epoch: frame.epoch, seq: state.seq ?? frame.seq, problem: null });
    case "resync": {
      const entries = state.entries.map(closed);
      const note = {
        kind: "note",
        key: `resync-${frame.epoch}-${frame.seq}`,
        text: "Some of what was said is not shown here.",
      };
      return only(add({ ...state, entries, waiting: [], epoch: frame.epoch, seq: frame.seq }, note));
    }
    case "message_accepted": {
      const next = patch(state, frame.id, { status: "sent", remark: null });
      const entry = next.entries.find(({ key }) => key === frame.id);
      // A command is answered at once and has no turn to wait for.
      if (entry === undefined || entry.isAnswered || entry.text.startsWith("/")) return only(next);
      return only({ ...next, waiting: [...new Set([...next.waiting, frame.id])] });
    }
    default:
      return only(state);
  }
}

function refused(state, { code, detail, chat_id, id, retry_after_ms: afterMs = 2_000 }) {
  if (code === "access_denied" && chat_id === state.chatId) return { state, ask: { type: "new_chat" } };
  const isTemporary = ["overloaded", "unavailable", "rate_limited"].includes(code);
  if (id === undefined) return only({ ...state, problem: detail });
  const remark = isTemporary ? "Not stored yet; it is sent again." : detail;
  const next = patch(state, id, { status: isTemporary ? "sending" : "failed", remark });
  return { state: next, ask: isTemporary ? { type: "retry", id, afterMs } : null };
}

function numbered(state, frame) {
  const last = state.seq ?? frame.seq - 1;
  if (frame.seq <= last) return only(state);
  if (frame.seq !== last + 1) return { state, ask: { type: "attach" } };
  return only({ ...show(state, frame), seq: frame.seq });
}

function show(state, frame) {
  switch (frame.event) {
    case "delta":
      return grow(state, `s-${frame.stream_id}`, "answer", frame.text);
    case "reasoning_delta":
      return grow(state, `r-${frame.stream_id}`, "thought", frame.text);
    case "reasoning_end":
      return patch(state, `r-${frame.stream_id}`, { isOpen: false });
    case "stream_end":
      return put(state, { kind: "answer", key: `s-${frame.stream_id}`, text: frame.text, isOpen: false });
    case "stream_reset":
      return { ...state, entries: state.entries.filter(({ key }) => key !== `s-${frame.stream_id}`) };
    case "message":
      return add(state, { kind: "answer", key: `m-${frame.seq}`, text: frame.text, isOpen: false });
    case "tool":
      return put(state, { kind: "tool", key: `t-${frame.call_id}`, name: frame.name, phase: frame.phase });
    case "turn_end":
      return endTurn(state, frame);
    default:
      return state;
  }
}

function endTurn(state, { message_ids, outcome, turn_id }) {
  const answered = new Set(message_ids);
  const entries = state.entries.map((entry) => {
    if (entry.kind === "user" && answered.has(entry.key))
      return { ...entry, status: "sent", remark: null, isAnswered: true };
    return closed(entry);
  });
  const next = { ...state, entries, waiting: state.waiting.filter((id) => !answered.has(id)) };
  if (outcome !== "stopped") return next;
  return add(next, { kind: "note", key: `e-${turn_id}`, text: "Stopped." });
}

function closed(entry) {
  return entry.isOpen ? { ...entry, isOpen: false } : entry;
}

function grow(state, key, kind, text) {
  const entry = state.entries.find((known) => known.key === key);
  return put(state, { kind, key, text: (entry?.text ?? "") + text, isOpen: true });
}

function put(state, entry) {
  return state.entries.some(({ key }) => key === entry.key) ? patch(state, entry.key, entry) : add(state, entry);
}

function patch(state, key, change) {
  return { ...state, entries: state.entries.map((entry) => (entry.key === key ? { ...entry, ...change } : entry)) };
}

function add(state, entry) {
  return { ...state, entries: [...state.entries, entry].slice(-MAX_ENTRIES) };
}

function only(state) {
  return { state, ask: null };
}
