output "address" {
  value       = "etcd://${join(",", [for host in local.hosts : "${host}:2379"])}"
  description = "The members, as --store has them."
}
