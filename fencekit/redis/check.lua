-- KEYS: the value, the fence. ARGV: the fence of the holder and, to write, the new value.
local known = redis.call('GET', KEYS[2]) or '0'
if known ~= ARGV[1] then
  if tonumber(known) > tonumber(ARGV[1]) then
    return redis.error_reply('STALE_FENCE ' .. known)
  end
  redis.call('SET', KEYS[2], ARGV[1])
end
if ARGV[2] then return redis.call('SET', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[1])
