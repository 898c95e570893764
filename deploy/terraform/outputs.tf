output "url" {
  value       = module.fencepost.url
  description = "Where the API is, in the cluster."
}

output "store" {
  value       = local.store.address
  description = "What the server gets as --store."
}
