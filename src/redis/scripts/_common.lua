-- Put in front of every script (after its `#!lua` line). Not a script itself.
-- KEYS[1] boot · ARGV[1] base of all keys · ARGV[2] run id of the connection's server · ARGV[3] arguments, JSON
-- `K` (names of keys below the base) is put in front of this file from keys.ts.
--
-- Fields of a session's hash:
--   st idle|sched|run|parked · w wake number · f fence · o owner · ct the call that took it · held 1: no message's work
--   n newest mailbox number · tk newest number begun · a tries of message `an` · pk ids of parked calls
--   db latest end of a running debounce (ms) · due of it (ms) · fr 1: fragments wait · x:<route> highest number a stop covers · sm the highest
--   file "inode bytes fence" · os open stream, JSON · eb newest emission of this fence
-- Numbers are written with %.0f: Lua would write 1.8e+15.
local base, runId = ARGV[1], ARGV[2]
local A = cjson.decode(ARGV[3])
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)
local DAY = 86400
-- How far around a message its fragments are looked for.
local MAX_FRAGMENTS = 32
local wakes = {}

local function int(n) return string.format('%.0f', n) end
local function key(name, rest) return base .. K[name] .. (rest or '') end
local function session(s) return key('session', s) end
local function get(s, ...) return redis.call('HMGET', session(s), ...) end
local function set(s, ...) return redis.call('HSET', session(s), ...) end

-- A server with another run id is another life: its number is the epoch of chat events. Taken from the clock, so that
-- a server put back to an older state never gives out a number its clients know already.
local function bootNumber()
  local b = redis.call('HMGET', KEYS[1], 'run', 'n')
  if b[1] == runId then return tonumber(b[2]) end
  local n = math.max((tonumber(b[2]) or 0) + 1, nowMs)
  redis.call('HSET', KEYS[1], 'run', runId, 'n', int(n))
  return n
end

-- A mailbox member is `n id route joins headerLength header payload`; joins 1: may join a running turn; 2: a fragment, it
-- may and belongs to the message of its route before it.
local function entry(member)
  local n, id, route, joins, length, at = string.match(member, '^(%d+) (%S+) (%S+) (%d) (%d+) ()')
  return {
    n = tonumber(n), id = id, route = route, joins = joins ~= '0', isFragment = joins == '2', kind = joins,
    header = string.sub(member, at, at + length - 1), payload = string.sub(member, at + length),
  }
end

-- The member of an entry with this payload.
local function member(e, payload)
  return int(e.n) .. ' ' .. e.id .. ' ' .. e.route .. ' ' .. e.kind .. ' ' .. #e.header .. ' ' .. e.header .. payload
end

local function senderOf(e) return cjson.decode(e.header).from end

-- The oldest `count` entries; 0: all.
local function mailbox(s, count)
  local list = {}
  for i, member in ipairs(redis.call('ZRANGE', key('mailbox', s), 0, count - 1)) do list[i] = entry(member) end
  return list
end

-- The waiting entry of an inbound key: its number stands in the dedupe key, unless that has expired.
local function find(s, id)
  local n = string.match(redis.call('GET', key('dedupe', id)) or '', '^m:(%d+)$')
  if n then
    local member = redis.call('ZRANGEBYSCORE', key('mailbox', s), n, n)[1]
    return member and entry(member)
  end
  for _, e in ipairs(mailbox(s, 0)) do
    if e.id == id then return e end
  end
end

-- Schedules a session under a new wake number; the caller of the script adds the job.
local function wake(s, delayMs)
  local w = (tonumber(redis.call('HGET', session(s), 'w')) or 0) + 1
  set(s, 'st', 'sched', 'w', int(w))
  redis.call('ZADD', key('sched'), int(nowMs + delayMs), s)
  wakes[#wakes + 1] = { s, int(w), int(delayMs) }
  return w
end

-- Keeps a slot for a session that is called next; false when it waits no more.
local function callIn(s)
  if redis.call('HGET', session(s), 'st') ~= 'sched' then return false end
  redis.call('ZADD', key('turns'), int(nowMs + A.leaseMs), s)
  wake(s, 0)
  return true
end

-- Frees a slot and keeps it for the session that has waited longest, so that nobody overtakes it.
local function freeSlot(s)
  if redis.call('ZREM', key('turns'), s) == 0 then return end
  while true do
    local head = redis.call('ZPOPMIN', key('waiting'))[1]
    if not head or callIn(head) then return end
  end
end

local function leave(s)
  redis.call('ZREM', key('lease'), s)
  freeSlot(s)
end

local function becomeIdle(s)
  leave(s)
  redis.call('ZREM', key('sched'), s)
  redis.call('ZREM', key('parked'), s)
  local gone = { 'os', 'db', 'due', 'pk', 'a', 'an', 'held', 'sm', 'fr' }
  for _, field in ipairs(redis.call('HGET', session(s), 'sm') and redis.call('HKEYS', session(s)) or {}) do
    if string.sub(field, 1, 2) == 'x:' then gone[#gone + 1] = field end
  end
  redis.call('HDEL', session(s), unpack(gone))
  set(s, 'st', 'idle')
  redis.call('EXPIRE', session(s), 30 * DAY)
end

-- Becomes idle, or is scheduled again if mail waits.
local function giveBack(s, delayMs)
  if redis.call('ZCARD', key('mailbox', s)) == 0 then return becomeIdle(s) end
  leave(s)
  redis.call('HDEL', session(s), 'held', 'db', 'due')
  wake(s, delayMs)
end

local function nextFence(s)
  local f = math.max((tonumber(redis.call('HGET', session(s), 'f')) or 0) + 1, nowUs)
  set(s, 'f', int(f), 'eb', '0')
  return f
end

-- 'held', 'left' (this fence's holder has given the session back) or 'lost'.
local function holds(s, fence)
  local h = get(s, 'f', 'st')
  if tonumber(h[1]) ~= fence then return 'lost' end
  return h[2] == 'run' and 'held' or 'left'
end

-- The wake of a session that this holder gave back by a call whose reply was lost.
local function formerWakes(s)
  local h = get(s, 'st', 'w')
  return h[1] == 'sched' and { { s, h[2], '0' } } or {}
end

local function setFile(s, file)
  if file and file ~= cjson.null then
    set(s, 'file', file.inode .. ' ' .. int(file.bytes) .. ' ' .. int(file.fence))
  end
end

-- Whether a stop covers this message.
local function isStopped(s, e)
  if e.n > (tonumber(redis.call('HGET', session(s), 'sm')) or 0) then return false end
  local marks = get(s, 'x:' .. e.route, 'x:*')
  return e.n <= math.max(tonumber(marks[1]) or 0, tonumber(marks[2]) or 0)
end

local function setResult(id, json)
  redis.call('SET', key('result', id), json, 'EX', 3600)
  redis.call('PUBLISH', key('result', id), json)
end

-- Brings a chat into the server's present life; gives its newest number, the boot number, and where each epoch began
-- (`boot:seq …`, sixteen at most: a reader from before them starts anew).
local function touchChat(name)
  local meta, boot = key('chat', name), bootNumber()
  local m = redis.call('HMGET', meta, 'seq', 'ep', 'es')
  local seq, starts = tonumber(m[1]) or 0, m[3] or ''
  if tonumber(m[2]) ~= boot then
    local kept = {}
    for start in string.gmatch(starts, '%S+') do kept[#kept + 1] = start end
    kept[#kept + 1] = int(boot) .. ':' .. int(seq)
    starts = table.concat(kept, ' ', math.max(1, #kept - 15))
    redis.call('HSET', meta, 'seq', int(seq), 'ep', int(boot), 'es', starts)
    redis.call('EXPIRE', meta, 30 * DAY)
  end
  return seq, boot, starts
end

local function appendEvent(o)
  local name = o.account .. ':' .. o.chat
  local seq = touchChat(name) + 1
  redis.call('HSET', key('chat', name), 'seq', int(seq))
  redis.call('XADD', key('events', name), 'MAXLEN', '~', 1000, int(seq) .. '-0', 'b', o.body)
  redis.call('EXPIRE', key('events', name), 7 * DAY)
  redis.call('EXPIRE', key('chat', name), 30 * DAY)
  redis.call('PUBLISH', key('eventFeed', name), int(seq) .. ' ' .. o.body)
end

local function answer(s, waitId, payload)
  redis.call('SET', key('answer', s .. ':' .. waitId), payload, 'EX', 2 * DAY)
  local h = get(s, 'st', 'pk')
  if h[1] ~= 'parked' then return end
  for id in string.gmatch(h[2] or '', '%S+') do
    if id == waitId then
      redis.call('ZREM', key('parked'), s)
      wake(s, 0)
      return
    end
  end
end

-- Puts one message out. o: via, body, id (when it must go out once), durable, and by `via` account, chat, address,
-- parent, wait, payload.
local function send(o)
  if o.id and not redis.call('SET', key('sent', o.id), '1', 'NX', 'EX', 2 * DAY) then return end
  if o.via == 'events' then
    appendEvent(o)
  elseif o.via == 'outbox' and o.durable then
    redis.call('XADD', key('outbox', o.account), '*', 'b', o.body)
  elseif o.via == 'call' then
    answer(o.parent, o.wait, o.payload)
  elseif o.via == 'outbox' or o.via == 'result' then
    redis.call('PUBLISH', key('live', o.address), o.body)
  end
end

local function sendAll(list) for _, o in ipairs(list) do send(o) end end

-- Says something to the sender of a message that has no holder to speak for it. `event` is JSON text.
-- h: the message's header {via, account, channel, chat, thread, reply, clientId, route (JSON text), address, parent, wait}.
local function speak(h, id, turnId, content, event)
  if h.via == 'result' or h.via == 'call' then return end
  local body = '{"id":' .. cjson.encode(id) .. ',"channel":' .. cjson.encode(h.channel)
    .. ',"chatId":' .. cjson.encode(h.chat) .. (h.thread and ',"threadId":' .. cjson.encode(h.thread) or '')
    .. (h.reply and ',"replyTo":' .. cjson.encode(h.reply) or '') .. ',"content":' .. cjson.encode(content)
    .. ',"media":[],"buttons":[],"event":' .. event .. ',"turnId":"' .. turnId .. '","seq":0,"metadata":{}}'
  local durable = h.via == 'outbox' and string.find(event, '"notice"', 1, true) ~= nil
  if durable then body = '{"route":' .. h.route .. ',"message":' .. body .. '}' end
  send({ via = h.via, account = h.account, chat = h.chat, address = h.address, body = body, id = id, durable = durable })
end

-- Ends a message that nobody will answer: its result, what its sender is told, and the end of its turn.
local function endMessage(s, e, outcome, notice)
  local h, turnId = cjson.decode(e.header), 't' .. e.id
  redis.call('ZREMRANGEBYSCORE', key('mailbox', s), int(e.n), int(e.n))
  setResult(e.id, '{"outcome":"' .. outcome .. '","text":' .. cjson.encode(notice) .. ',"turnId":"' .. turnId .. '","usage":null}')
  if h.via == 'call' then answer(h.parent, h.wait, notice) end
  if outcome == 'failed' then speak(h, turnId .. '.notice', turnId, notice, '{"type":"notice"}') end
  speak(h, turnId .. '.end', turnId, '', '{"type":"turn_end","messageIds":[' .. cjson.encode(h.clientId)
    .. '],"outcome":"' .. outcome .. '","usage":null}')
end

-- Voids a stream that nobody will finish.
local function voidStream(s)
  local open = redis.call('HGET', session(s), 'os')
  if not open then return end
  redis.call('HDEL', session(s), 'os')
  local stream = cjson.decode(open)
  speak(stream.header, stream.turnId .. '.void.' .. stream.streamId, stream.turnId, '',
    '{"type":"stream_reset","streamId":' .. cjson.encode(stream.streamId) .. '}')
end

-- Counts a try of the oldest message; the last one moves it to the dead letters and tells its sender.
-- True when it was given up.
local function countTry(s, reason)
  local head = mailbox(s, 1)[1]
  local h = get(s, 'tk', 'a', 'an')
  if not head or head.n > (tonumber(h[1]) or 0) then return false end
  local tries = (tonumber(h[3]) == head.n and tonumber(h[2]) or 0) + 1
  set(s, 'a', int(tries), 'an', int(head.n))
  if tries < A.maxTries then return false end
  redis.call('HSET', key('deadIn'), head.id, '{"session":' .. cjson.encode(s) .. ',"at":' .. int(nowMs) .. ',"tries":'
    .. int(tries) .. ',"reason":' .. cjson.encode(reason) .. ',"message":' .. head.payload .. '}')
  voidStream(s)
  endMessage(s, head, 'failed', A.giveUpNotice)
  return true
end

-- Replies hold an entry as {n, id, payload, '1' when a stop covers it}.
local function reply(s, list)
  local out = {}
  for i, e in ipairs(list) do out[i] = { int(e.n), e.id, e.payload, isStopped(s, e) and '1' or '0' } end
  return out
end

-- Gives the oldest message to its holder, with the fragments that belong to it, and notes them as begun.
local function handOver(s)
  local list = mailbox(s, 1)
  local head, h = list[1], get(s, 'tk', 'fr')
  if not head then return {} end
  local from = h[2] and head.joins and senderOf(head)
  for _, e in ipairs(from and mailbox(s, MAX_FRAGMENTS) or {}) do
    if e.route == head.route and e.n > head.n and senderOf(e) == from then
      if not e.isFragment then break end
      list[#list + 1] = e
    end
  end
  if list[#list].n > (tonumber(h[1]) or 0) then set(s, 'tk', int(list[#list].n)) end
  return reply(s, list)
end
