#!lua flags=allow-oom
-- Uses a one-time token up. One that was issued in an earlier life of the server is void: its use may be among what that
-- life lost.
-- A: token (its digest), call (names this call: repeated, it gives the same answer)
-- Returns {'none'} | {'ok', client}
local done = redis.call('GET', key('tokenCall', A.call))
if done then return { 'ok', done } end
local stored = redis.call('GETDEL', key('token', A.token))
if not stored then return { 'none' } end
redis.call('ZREM', key('tokens'), A.token)
local boot, client = string.match(stored, '^(%d+) (.*)$')
if boot ~= int(bootNumber()) then return { 'none' } end
redis.call('SET', key('tokenCall', A.call), client, 'EX', 60)
return { 'ok', client }
