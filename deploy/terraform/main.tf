# Fencepost, with an etcd cluster of its own or on a store that exists. Nothing secret passes
# through Terraform: Secrets are named, and exist before.

locals {
  labels = merge(var.labels, {
    "app.kubernetes.io/instance"   = var.name
    "app.kubernetes.io/part-of"    = "fencepost"
    "app.kubernetes.io/managed-by" = "terraform"
  })

  own_tls = try(var.etcd.tls_secret, null)

  store = var.etcd == null ? {
    address           = var.store.address
    ca_secret         = var.store.ca_secret
    client_tls_secret = var.store.client_tls_secret
    username          = var.store.username
    password_secret   = var.store.password_secret
    } : {
    address           = module.etcd[0].address
    ca_secret         = local.own_tls
    client_tls_secret = local.own_tls
    username          = null
    password_secret   = null
  }
}

module "etcd" {
  source = "./modules/etcd"
  count  = var.etcd == null ? 0 : 1

  name             = "${var.name}-etcd"
  namespace        = var.namespace
  labels           = local.labels
  clients          = module.fencepost.pod_labels
  metrics_from     = var.network_policies.metrics_from
  network_policies = var.network_policies.enabled
  etcd             = var.etcd
}

module "fencepost" {
  source = "./modules/fencepost"

  name             = var.name
  namespace        = var.namespace
  labels           = local.labels
  image            = var.image
  replicas         = var.replicas
  cpu              = var.cpu
  memory_mib       = var.memory_mib
  auth             = var.auth
  tls              = var.tls
  oidc             = var.oidc
  quotas           = var.quotas
  token_key_secret = var.token_key_secret
  store            = local.store
  store_network = {
    etcd = var.etcd == null ? null : { "app.kubernetes.io/name" = "etcd", "app.kubernetes.io/instance" = var.name }
    cidr = try(var.store.network_policy_cidr, null)
  }
  max_ttl_seconds    = var.max_ttl_seconds
  drain              = var.drain
  log_level          = var.log_level
  trusted_proxy_hops = var.trusted_proxy_hops
  webhooks           = var.webhooks
  otlp_endpoint      = var.otlp_endpoint
  autoscaling        = var.autoscaling
  ingress            = var.ingress
  network_policies   = var.network_policies
}

module "monitoring" {
  source = "./modules/monitoring"
  count  = var.monitoring == null ? 0 : 1

  name        = var.name
  namespace   = var.monitoring.namespace
  labels      = local.labels
  rule_labels = var.monitoring.rule_labels
}
