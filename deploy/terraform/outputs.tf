output "url" {
  value       = "${var.tls == null ? "http" : "https"}://${var.name}.${var.namespace}.svc"
  description = "Where the API is, in the cluster."
}

output "values" {
  value       = local.values
  description = "What the chart gets: files of values, as YAML."
}
