#!lua
-- The pairing code of a person: the one that waits, or the one offered. Repeated, it gives the same.
-- A: channel, sender, code (offered), welcome (an envelope for `send`, kept for the approval), most (that may wait in a
-- channel), ttlMs, spentMs (how long a code is remembered afterwards), tellMs, fullMs (how long one telling counts)
-- Returns {'paired', '1' for an owner} | {'denied'} | {'full', telling} | {'taken'} (offer another code)
--   | {'code', code, expires, ms left, telling, '1' where this call began it}
local id = A.channel .. ':' .. A.sender

-- When the present telling began; a new one begins when the last was long enough ago.
local function telling(what, forMs)
  local isNew = redis.call('SET', key('pairingTold', what), int(nowMs), 'NX', 'PX', int(forMs))
  return redis.call('GET', key('pairingTold', what)), isNew and '1' or '0'
end

local known = redis.call('HGET', key('paired'), id)
if known then return { 'paired', cjson.decode(known).owner and '1' or '0' } end
if redis.call('EXISTS', key('pairingDenied', id)) == 1 then return { 'denied' } end

redis.call('ZREMRANGEBYSCORE', key('pairingWaiting'), '-inf', int(nowMs))
local mine, waiting = nil, 0
for _, code in ipairs(redis.call('ZRANGE', key('pairingWaiting'), 0, -1)) do
  local h = redis.call('HMGET', key('pairingCode', code), 'channel', 'sender')
  if h[1] == A.channel then
    waiting = waiting + 1
    if h[2] == A.sender then mine = code end
  end
end

if not mine then
  if waiting >= A.most then return { 'full', (telling('full:' .. id, A.fullMs)) } end
  if redis.call('EXISTS', key('pairingCode', A.code)) == 1 then return { 'taken' } end
  mine = A.code
  local expires = int(nowMs + A.ttlMs)
  redis.call('HSET', key('pairingCode', mine), 'channel', A.channel, 'sender', A.sender, 'expires', expires,
    'state', 'waiting', 'welcome', cjson.encode(A.welcome))
  redis.call('PEXPIRE', key('pairingCode', mine), int(A.ttlMs + A.spentMs))
  redis.call('ZADD', key('pairingWaiting'), expires, mine)
end
local expires = redis.call('HGET', key('pairingCode', mine), 'expires')
local toldMs, isNew = telling('code:' .. mine, A.tellMs)
return { 'code', mine, expires, int(tonumber(expires) - nowMs), toldMs, isNew }
