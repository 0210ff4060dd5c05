#!lua flags=allow-oom
-- Lists sessions that have been due for too long and do not wait for a slot.
-- A: sweepMs, limit
-- Returns {{session, wake} …}
local out = {}
for _, s in ipairs(redis.call('ZRANGEBYSCORE', key('sched'), '-inf', int(nowMs - A.sweepMs), 'LIMIT', 0, A.limit)) do
  if not redis.call('ZSCORE', key('waiting'), s) then
    out[#out + 1] = { s, redis.call('HGET', session(s), 'w') or '0' }
  end
end
return out
