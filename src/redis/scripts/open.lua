#!lua flags=allow-oom
-- Takes a scheduled session: a new fence, a lease, and what waits in its mailbox.
-- A: session, wake, call (names this call: repeated, it gives the same claim), owner, leaseMs, maxTurns (0: no bound)
-- Returns {'stale'} | {'full'} | {'ok', fence, file, tries, openStream, entries (one with its fragments, or none)}
local s = A.session
local h = get(s, 'st', 'w', 'file', 'a', 'an', 'os', 'ct', 'f')
local function claim(fence)
  local list = handOver(s)
  local tries = list[1] and h[5] == list[1][1] and h[4] or '0'
  return { 'ok', fence, h[3] or '', tries, h[6] or '', list }
end
if h[1] == 'run' and h[7] == A.call then return claim(h[8]) end
if h[1] ~= 'sched' or tonumber(h[2]) ~= A.wake then return { 'stale' } end
if A.maxTurns > 0 and not redis.call('ZSCORE', key('turns'), s) then
  local used = redis.call('ZCOUNT', key('turns'), int(nowMs), '+inf')
  if used >= A.maxTurns then
    redis.call('ZADD', key('waiting'), 'NX', int(nowMs), s)
    return { 'full' }
  end
end
redis.call('ZREM', key('sched'), s)
redis.call('ZREM', key('waiting'), s)
redis.call('HDEL', session(s), 'db', 'due', 'held', 'pk')
local fence = nextFence(s)
set(s, 'st', 'run', 'o', A.owner, 'ct', A.call)
redis.call('ZADD', key('lease'), int(nowMs + A.leaseMs), s)
if A.maxTurns > 0 then redis.call('ZADD', key('turns'), int(nowMs + A.leaseMs), s) end
return claim(int(fence))
