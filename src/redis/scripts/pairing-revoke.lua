#!lua flags=allow-oom
-- Takes a pairing back.
-- A: channel, sender, call (names this call: repeated, it gives the same answer)
-- Returns {'ok'} | {'none'}
local earlier = redis.call('GET', key('pairingCall', A.call))
if earlier then return cjson.decode(earlier) end
local reply = { redis.call('HDEL', key('paired'), A.channel .. ':' .. A.sender) == 1 and 'ok' or 'none' }
redis.call('SET', key('pairingCall', A.call), cjson.encode(reply), 'EX', 300)
return reply
