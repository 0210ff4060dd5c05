#!lua
-- Appends a message to a session's mailbox, once, and schedules the session if it sleeps. Refused whole when memory is
-- full (no allow-oom).
-- A: session, id (inbound key), route (key), joins, header (JSON text), payload, debounceMs, wakesParked, maxMailbox, pressure,
--    repeated (it was acknowledged before: no bound applies), edit {of (inbound key), payload (as the message edited), isLate (also
--    when that one is answered)} or null
-- Returns {'stored'|'replaced'|'duplicate'|'ignored', state, wake, delayMs} or {'overloaded'}
local s = A.session
local function answerWith(status)
  local h = get(s, 'st', 'w', 'due')
  return { status, h[1] or 'idle', h[2] or '0', int(math.max(0, (tonumber(h[3]) or 0) - nowMs)) }
end
if redis.call('EXISTS', key('dedupe', A.id)) == 1 then return answerWith('duplicate') end
if not A.repeated and (A.pressure or redis.call('ZCARD', key('mailbox', s)) >= A.maxMailbox) then return { 'overloaded' } end
if A.edit ~= cjson.null then
  local e = find(s, A.edit.of)
  if e and e.n > (tonumber(redis.call('HGET', session(s), 'tk')) or 0) then
    -- It keeps its number and its id: only what it says changes.
    redis.call('SET', key('dedupe', A.id), 'e:' .. int(e.n), 'EX', 2 * DAY)
    redis.call('ZREMRANGEBYSCORE', key('mailbox', s), int(e.n), int(e.n))
    redis.call('ZADD', key('mailbox', s), int(e.n), member(e, A.edit.payload))
    return answerWith('replaced')
  end
  if not e and not A.edit.isLate then return answerWith('ignored') end
end
local h = get(s, 'st', 'n', 'db', 'due')
local state = h[1] or 'idle'
-- From the clock, so that a server put back to an older state gives no number twice.
local n = math.max((tonumber(h[2]) or 0) + 1, nowUs)
-- A fragment: quick, and its sender's message before it on this route waits and was quick as well, for five times as long at
-- most.
local function isFragment()
  if A.debounceMs == 0 then return false end
  local begun, age = tonumber(redis.call('HGET', session(s), 'tk')) or 0, A.debounceMs * 1000
  local from = cjson.decode(A.header).from
  for _, text in ipairs(redis.call('ZREVRANGE', key('mailbox', s), 0, MAX_FRAGMENTS - 1)) do
    local e = entry(text)
    if e.route == A.route and senderOf(e) == from then
      if not e.joins or e.n <= begun or n - e.n > age then return false end
      if not e.isFragment then return true end
      age = 5 * A.debounceMs * 1000
    end
  end
  return false
end
local joins = A.joins and (isFragment() and 2 or 1) or 0
if joins == 2 then set(s, 'fr', '1') end
redis.call('SET', key('dedupe', A.id), 'm:' .. int(n), 'EX', 2 * DAY)
set(s, 'n', int(n))
redis.call('EXPIRE', session(s), 30 * DAY)
redis.call('ZADD', key('mailbox', s), int(n),
  member({ n = n, id = A.id, route = A.route, kind = joins, header = A.header }, A.payload))

local debouncing = state == 'sched' and h[3] and tonumber(h[4]) > nowMs
if state == 'idle' or (state == 'parked' and A.wakesParked) then
  redis.call('ZREM', key('parked'), s)
  if A.debounceMs > 0 then
    set(s, 'db', int(nowMs + 5 * A.debounceMs), 'due', int(nowMs + A.debounceMs))
  end
  wake(s, A.debounceMs)
elseif debouncing then
  -- A fragment slides the wait, a command or a file ends it: an older job is stale by its wake number.
  local due = A.debounceMs > 0 and math.min(nowMs + A.debounceMs, tonumber(h[3])) or nowMs
  set(s, 'due', int(due))
  wake(s, due - nowMs)
end
return answerWith('stored')
