output "url" {
  value       = "${local.scheme}://${kubernetes_service_v1.api.metadata[0].name}.${var.namespace}.svc"
  description = "Where the API is, in the cluster."
}

output "pod_labels" {
  value       = local.selector
  description = "Labels by which the store's network policy knows the replicas."
}
