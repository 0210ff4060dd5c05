#!lua flags=allow-oom
-- Stops a route of a session (or all, `*`): what waits leaves the mailbox and is ended; what has begun is marked, and
-- whoever holds the session, now or later, ends it and keeps the work so far. Repeated: the same number, nothing more.
-- A: session, id (inbound key or ''), route, leaseMs
-- Returns {count, wakes}
local s = A.session
if A.id ~= '' then
  local known = redis.call('GET', key('dedupe', A.id))
  if known then return { string.match(known, '^stop:(%d+)$') or '0', wakes } end
end
local h = get(s, 'st', 'tk', 'n')
local state, begun, count = h[1] or 'idle', tonumber(h[2]) or 0, 0
local left = false
for _, e in ipairs(mailbox(s, 0)) do
  if (A.route == '*' or e.route == A.route) and not isStopped(s, e) then
    count = count + 1
    if e.n > begun then endMessage(s, e, 'stopped', 'Stopped.') else left = true end
  end
end
if left then set(s, 'x:' .. A.route, h[3], 'sm', h[3]) end
if left and (state == 'parked' or state == 'sched' and not redis.call('ZSCORE', key('waiting'), s)) then
  -- Whoever opens it ends what had begun; that must not wait for an answer or for a next try.
  redis.call('ZREM', key('parked'), s)
  wake(s, 0)
elseif not left and state == 'sched' and redis.call('ZCARD', key('mailbox', s)) == 0 then
  redis.call('ZREM', key('waiting'), s)
  becomeIdle(s)
end
if A.id ~= '' then redis.call('SET', key('dedupe', A.id), 'stop:' .. int(count), 'EX', 2 * DAY) end
redis.call('PUBLISH', key('hint'), s)
return { int(count), wakes }
