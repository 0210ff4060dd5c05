/**
 * The page itself: a socket to its own origin, the list of entries, the composer. What frames mean is in `chat.js`.
 * Invariant: everything from outside becomes text, never markup.
 */
import { attachFrame, emptyState, isBusy, reviveState, takeFrame, unsentFrames, withMessage } from "./chat.js";

const CHAT = "nanogate.chat";
const TOKEN = "nanogate.token";
/** A script sees no ping of the gateway, so the page asks by itself whether anybody is there. */
const PING_MS = 25_000;
const PHASES = { start: "running", end: "done", error: "failed" };

const byId = (id) => document.getElementById(id);
const list = byId("entries");
const composer = byId("composer");
const text = byId("text");
const shown = new Map();

let state = reviveState(localStorage.getItem(CHAT)) ?? emptyState();
let socket = null;
let tries = 0;
let isAttached = false;
let timer = null;
let saving = null;
let probe = null;

function connect() {
  clearTimeout(timer);
  const token = localStorage.getItem(TOKEN);
  const url = new URL("/ws", location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  if (token) url.searchParams.set("token", token);
  showState("connecting", tries === 0 ? "Connecting …" : "Connecting again …");
  isAttached = false;
  const opened = new WebSocket(url);
  socket = opened;
  opened.addEventListener("message", ({ data }) => onFrame(JSON.parse(data)));
  opened.addEventListener("close", ({ code }) => {
    if (socket === opened) onClose(code);
  });
}

function onClose(code) {
  socket = null;
  clearTimeout(probe);
  render();
  if (code === 4401 && localStorage.getItem(TOKEN)) {
    // The gateway may have another token by now, or none.
    localStorage.removeItem(TOKEN);
    connect();
    return;
  }
  if (code === 4401) {
    showState("offline", "Token needed");
    byId("token-dialog").showModal();
    return;
  }
  if (code === 4403) {
    showState("offline", "Not allowed");
    complain("This page may not talk to the gateway: it was opened under another address than the gateway's own.");
    return;
  }
  showState("offline", code === 1012 ? "Gateway restarts …" : "Offline, trying again …");
  tries += 1;
  timer = setTimeout(connect, Math.min(15_000, 400 * 2 ** tries) * (0.7 + Math.random() * 0.3));
}

function send(frame) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(frame));
}

function onFrame(frame) {
  clearTimeout(probe);
  const { state: next, ask } = takeFrame(state, frame);
  state = next;
  if (frame.event === "ready") send(attachFrame(state));
  if ((frame.event === "attached" || frame.event === "resync") && frame.chat_id === state.chatId) onAttached();
  if (frame.event === "stream_end" || frame.event === "message") byId("announce").textContent = frame.text;
  if (ask?.type === "attach") send(attachFrame(state));
  if (ask?.type === "new_chat") startChat();
  if (ask?.type === "retry")
    setTimeout(
      () =>
        unsentFrames(state)
          .filter(({ id }) => id === ask.id)
          .forEach(send),
      ask.afterMs,
    );
  render();
  save();
}

function onAttached() {
  tries = 0;
  showState("online", "Connected");
  if (!isAttached) unsentFrames(state).forEach(send);
  isAttached = true;
}

function startChat() {
  state = { ...emptyState(), chatId: newId() };
  send(attachFrame(state));
  render();
  save();
  text.focus();
}

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Asks whether the connection still lives: after sleep or a change of network nobody may have said that it does not. */
function check() {
  if (socket === null) return byId("token-dialog").open ? undefined : connect();
  if (!isAttached) return;
  clearTimeout(probe);
  probe = setTimeout(() => {
    const dead = socket;
    socket = null;
    dead?.close();
    tries = 0;
    connect();
  }, 5_000);
  send({ type: "ping" });
}

function save() {
  saving ??= setTimeout(saveNow, 500);
}

function saveNow() {
  clearTimeout(saving);
  saving = null;
  if (state.chatId === null) return;
  try {
    localStorage.setItem(CHAT, JSON.stringify(state));
  } catch (error) {
    complain(`This browser could not keep the conversation: ${error.name}`);
  }
}

function showState(name, words) {
  const element = byId("state");
  element.dataset.state = name;
  element.textContent = words;
}

function complain(words) {
  const element = byId("alert");
  element.textContent = words ?? "";
  element.hidden = !words;
}

function render() {
  const isAtEnd = innerHeight + scrollY >= document.body.scrollHeight - 80;
  const keys = new Set(state.entries.map(({ key }) => key));
  for (const [key, { node }] of shown) {
    if (keys.has(key)) continue;
    node.remove();
    shown.delete(key);
  }
  for (const entry of state.entries) draw(entry);
  byId("empty").hidden = state.entries.length > 0;
  byId("stop").hidden = !isBusy(state);
  byId("stop").disabled = socket === null;
  if (state.problem !== null) complain(state.problem);
  if (isAtEnd) scrollTo({ top: document.body.scrollHeight });
}

function draw(entry) {
  const known = shown.get(entry.key);
  if (known?.entry === entry) return;
  const node = known?.node ?? document.createElement("li");
  node.className = entry.kind;
  if (entry.kind === "user") node.dataset.status = entry.status;
  if (entry.kind === "answer") node.dataset.open = String(entry.isOpen);
  if (entry.kind === "tool") node.dataset.phase = entry.phase;
  node.textContent = entry.kind === "tool" ? `${entry.name}: ${PHASES[entry.phase]}` : entry.text;
  if (entry.remark) {
    const remark = document.createElement("span");
    remark.className = "remark";
    remark.textContent = entry.remark;
    node.append(remark);
  }
  if (known === undefined) list.append(node);
  shown.set(entry.key, { entry, node });
}

composer.addEventListener("submit", (event) => {
  event.preventDefault();
  const content = text.value.trim();
  if (content === "" || state.chatId === null) return;
  complain(null);
  state = withMessage({ ...state, problem: null }, newId(), content);
  text.value = "";
  if (isAttached) send(unsentFrames(state).at(-1));
  render();
  saveNow();
  scrollTo({ top: document.body.scrollHeight });
});

text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  composer.requestSubmit();
});

byId("stop").addEventListener("click", () => send({ type: "stop", chat_id: state.chatId }));
byId("new-chat").addEventListener("click", () => {
  complain(null);
  startChat();
});

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  localStorage.setItem(TOKEN, byId("token").value.trim());
  byId("token").value = "";
  byId("token-dialog").close();
  tries = 0;
  connect();
});

addEventListener("online", check);
setInterval(() => {
  if (isAttached && socket !== null) check();
}, PING_MS);
addEventListener("pagehide", saveNow);
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") check();
  else saveNow();
});

async function showModel() {
  const answer = await fetch("/page/info.json");
  const { model, isDemo } = await answer.json();
  byId("model").textContent = model;
  byId("demo").hidden = !isDemo;
}

showModel().catch(() => complain("The gateway did not say which model answers."));
render();
connect();
text.focus();
