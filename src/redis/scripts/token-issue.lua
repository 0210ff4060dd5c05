#!lua
-- Keeps a one-time token under its digest, unless as many as allowed are alive. Repeated, it keeps the same one.
-- A: token (its digest), client (whose it is), ttlMs, most
-- Returns {'ok'} | {'full', ms until the next place is free}
local tokens = key('tokens')
redis.call('ZREMRANGEBYSCORE', tokens, '-inf', int(nowMs))
if not redis.call('ZSCORE', tokens, A.token) and redis.call('ZCARD', tokens) >= A.most then
  local oldest = redis.call('ZRANGE', tokens, 0, 0, 'WITHSCORES')
  return { 'full', int(tonumber(oldest[2]) - nowMs) }
end
redis.call('SET', key('token', A.token), int(bootNumber()) .. ' ' .. A.client, 'PX', int(A.ttlMs))
redis.call('ZADD', tokens, int(nowMs + A.ttlMs), A.token)
redis.call('PEXPIRE', tokens, int(A.ttlMs))
return { 'ok' }
