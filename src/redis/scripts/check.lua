#!lua flags=allow-oom
-- Before a step: still the holder? stopped? And takes newer messages of the turn's own route in, up to the first that
-- must have its own turn.
-- A: session, fence, ids (inbound keys of the turn), route (key), take (how many at most)
-- Returns {'lost'} | {'ok', stopped ids, entries taken in}
local s = A.session
if holds(s, A.fence) ~= 'held' then return { 'lost' } end
local stopped, newest = {}, 0
for _, id in ipairs(A.ids) do
  local e = find(s, id)
  if e then
    newest = math.max(newest, e.n)
    if isStopped(s, e) then stopped[#stopped + 1] = id end
  end
end
local taken = {}
if A.take > 0 and #stopped == 0 then
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', key('mailbox', s), '(' .. int(newest), '+inf', 'LIMIT', 0, 200)) do
    local e = entry(member)
    if e.route == A.route then
      if not e.joins or #taken >= A.take then break end
      taken[#taken + 1] = e
    end
  end
end
if #taken > 0 then set(s, 'tk', int(math.max(tonumber(redis.call('HGET', session(s), 'tk')) or 0, taken[#taken].n))) end
return { 'ok', stopped, reply(s, taken) }
