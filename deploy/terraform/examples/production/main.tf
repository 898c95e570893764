# Replicas by load behind an Ingress, TLS everywhere, snapshots every hour, network
# policies, the dashboard and the alerts. What has to be there before is in docs/operate/install.md.

variable "image" {
  type        = string
  default     = "registry.example.com/fencepost:v0.1.0"
  description = "Image of Fencepost, where the cluster finds it."
}

module "fencepost" {
  source = "../.."

  namespace  = "fencepost"
  image      = var.image
  replicas   = 3
  cpu        = "1"
  memory_mib = 2048

  auth = {
    jwks     = "https://issuer.example.com/jwks.json"
    issuer   = "https://issuer.example.com"
    audience = "fencepost"
  }

  tls    = { secret = "fencepost-api" }
  quotas = { requests_per_second = 5000, waiting = 20000 }

  etcd = {
    storage         = "50Gi"
    quota_mib       = 8192
    cpu             = "2"
    memory_mib      = 8192
    peer_tls_secret = "fencepost-etcd-peer"
    tls_secret      = "fencepost-etcd"
    backup          = {}
  }

  autoscaling        = { max_replicas = 10, requests_per_replica = 4000 }
  trusted_proxy_hops = 1 # the Ingress, which network_policies make the only way in
  otlp_endpoint      = "http://collector.monitoring.svc:4318"

  ingress = {
    host       = "locks.example.com"
    class      = "nginx"
    tls_secret = "fencepost-tls"
  }

  network_policies = {
    # A client that reaches a replica past the proxy can claim any address.
    from_namespaces = ["ingress-nginx"]
    egress          = [{ cidr = "10.0.0.0/8", port = 4318 }]
  }

  monitoring = { namespace = "monitoring", rule_labels = { prometheus_rules = "1" } }
}

output "url" {
  value       = module.fencepost.url
  description = "Where the API is, in the cluster."
}
