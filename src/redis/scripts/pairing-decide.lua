#!lua flags=allow-oom
-- Decides about a pairing code, once a call: pairs the person and tells them so, or says no. Tries that fail are counted,
-- for who tries and for all; who is locked out is so for a right code too.
-- A: code (empty: none that could be one), by, verdict ('approve' | 'deny'), call, hasOwners, mostTries, mostAll, lockMs,
-- deniedMs
-- Returns {'done', channel, sender, '1' for an owner} | {'unknown'} | {'expired'} | {'used'} | {'locked', ms}
local earlier = redis.call('GET', key('pairingCall', A.call))
if earlier then return cjson.decode(earlier) end

local counters = { { A.by, A.mostTries }, { '*', A.mostAll } }
local lockedMs = 0
for _, each in ipairs(counters) do
  local name = key('pairingTries', each[1])
  if (tonumber(redis.call('GET', name)) or 0) >= each[2] then lockedMs = math.max(lockedMs, redis.call('PTTL', name)) end
end
-- What was acknowledged once is not refused when it is repeated.
if lockedMs > 0 and not A.repeated then return { 'locked', int(lockedMs) } end

local function answered(reply)
  redis.call('SET', key('pairingCall', A.call), cjson.encode(reply), 'EX', 300)
  return reply
end

local function failed(why)
  for _, each in ipairs(counters) do
    local name = key('pairingTries', each[1])
    local count = redis.call('INCR', name)
    if count == 1 or count >= each[2] then redis.call('PEXPIRE', name, int(A.lockMs)) end
  end
  return answered({ why })
end

local name = key('pairingCode', A.code)
local h = redis.call('HMGET', name, 'channel', 'sender', 'expires', 'state', 'welcome')
if not h[1] then return failed('unknown') end
if h[4] ~= 'waiting' then return failed('used') end
if tonumber(h[3]) <= nowMs and not A.repeated then return failed('expired') end

local id = h[1] .. ':' .. h[2]
redis.call('HSET', name, 'state', A.verdict)
redis.call('ZREM', key('pairingWaiting'), A.code)
if A.verdict == 'deny' then
  redis.call('SET', key('pairingDenied', id), '1', 'PX', int(A.deniedMs))
  return answered({ 'done', h[1], h[2], '0' })
end
local isFirst = redis.call('SET', key('pairedFirst'), id, 'NX') and true or false
local isOwner = isFirst and not A.hasOwners
redis.call('HSET', key('paired'), id, cjson.encode({ since = nowMs, owner = isOwner }))
send(cjson.decode(h[5]))
return answered({ 'done', h[1], h[2], isOwner and '1' or '0' })
