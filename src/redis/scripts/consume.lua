#!lua flags=allow-oom
-- Ends a delivery, under the owner's fence: delivered, or into the dead letters; its receipts are then kept as long as
-- the letter. Repeated, it makes no second letter: a person may have decided about the first one meanwhile.
-- A: account, fence, entry, id (outbound), deadLetter (JSON text or '')
-- Returns {'lost'} | {'ok'}
local h = redis.call('HMGET', key('accountOwner', A.account), 'fence', 'until')
if tonumber(h[1]) ~= A.fence or (tonumber(h[2]) or 0) < nowMs then return { 'lost' } end
if redis.call('XDEL', key('outbox', A.account), A.entry) == 1 and A.deadLetter ~= '' then
  redis.call('HSET', key('deadOut'), A.id, A.deadLetter)
  redis.call('PERSIST', key('receipt', A.id))
end
return { 'ok' }
