#!lua flags=allow-oom
-- Takes an idle or scheduled session for work without a message.
-- A: session, call (names this call: repeated, it gives the same claim), owner, leaseMs
-- Returns {'busy'} | {'ok', fence, file}
local s = A.session
local h = get(s, 'st', 'file', 'ct', 'f')
if h[1] == 'run' and h[3] == A.call then return { 'ok', h[4], h[2] or '' } end
if h[1] == 'run' or h[1] == 'parked' then return { 'busy' } end
redis.call('ZREM', key('sched'), s)
redis.call('ZREM', key('waiting'), s)
local fence = nextFence(s)
set(s, 'st', 'run', 'o', A.owner, 'held', '1', 'ct', A.call)
redis.call('ZADD', key('lease'), int(nowMs + A.leaseMs), s)
return { 'ok', int(fence), h[2] or '' }
