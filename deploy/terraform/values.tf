# The variables under the names of the chart. What is null is not set: the chart has the default.
locals {
  values = [
    yamlencode({ for name, value in local.all :
      name => try({ for k, v in value : k => v if v != null }, value) if value != null
    }),
    yamlencode(var.values),
  ]

  all = {
    image     = var.image
    replicas  = var.replicas
    resources = local.resources
    labels    = var.labels
    auth = {
      jwtSecret = var.auth.jwt_secret
      jwks      = var.auth.jwks
      issuer    = var.auth.issuer
      audience  = var.auth.audience
    }
    tls = {
      secret     = try(var.tls.secret, null)
      clientCA   = try(var.tls.client_ca, null)
      principals = try(var.tls.principals, null)
    }
    oidc = {
      issuer       = try(var.oidc.issuer, null)
      clientID     = try(var.oidc.client_id, null)
      principals   = try(var.oidc.principals, null)
      clientSecret = try(var.oidc.client_secret, null)
      redirectURL  = try(var.oidc.redirect_url, null)
      nameClaim    = try(var.oidc.name_claim, null)
      scopes       = try(var.oidc.scopes, null)
    }
    quotas         = var.quotas
    tokenKeySecret = var.token_key_secret
    store = {
      address           = try(var.store.address, null)
      caSecret          = try(var.store.ca_secret, null)
      clientTLSSecret   = try(var.store.client_tls_secret, null)
      username          = try(var.store.username, null)
      passwordSecret    = try(var.store.password_secret, null)
      networkPolicyCIDR = try(var.store.network_policy_cidr, null)
    }
    etcd = {
      enabled       = var.etcd != null
      image         = try(var.etcd.image, null)
      members       = try(var.etcd.members, null)
      storage       = try(var.etcd.storage, null)
      storageClass  = try(var.etcd.storage_class, null)
      quotaMiB      = try(var.etcd.quota_mib, null)
      resources     = local.etcd_resources
      peerTLSSecret = try(var.etcd.peer_tls_secret, null)
      tlsSecret     = try(var.etcd.tls_secret, null)
      backup        = local.backup
    }
    maxTTLSeconds    = var.max_ttl_seconds
    drain            = { delaySeconds = var.drain.delay_seconds, seconds = var.drain.seconds }
    logLevel         = var.log_level
    trustedProxyHops = var.trusted_proxy_hops
    webhooks = {
      allow     = var.webhooks.allow
      allowHTTP = var.webhooks.allow_http
      ports     = var.webhooks.ports
    }
    otlpEndpoint = var.otlp_endpoint
    autoscaling = {
      enabled            = var.autoscaling != null
      maxReplicas        = try(var.autoscaling.max_replicas, null)
      cpuPercent         = try(var.autoscaling.cpu_percent, null)
      requestsPerReplica = try(var.autoscaling.requests_per_replica, null)
    }
    ingress = {
      enabled     = var.ingress != null
      host        = try(var.ingress.host, null)
      class       = try(var.ingress.class, null)
      tlsSecret   = try(var.ingress.tls_secret, null)
      paths       = try(var.ingress.paths, null)
      annotations = try(var.ingress.annotations, null)
    }
    networkPolicy = {
      enabled        = var.network_policies.enabled
      fromNamespaces = var.network_policies.from_namespaces
      metricsFrom    = var.network_policies.metrics_from
      egress         = var.network_policies.egress
      privateRanges  = var.network_policies.private_ranges
    }
    monitoring = {
      enabled    = var.monitoring != null
      namespace  = try(var.monitoring.namespace, null)
      ruleLabels = try(var.monitoring.rule_labels, null)
    }
  }

  memory      = { for k, v in { memory = try("${var.memory_mib}Mi", null) } : k => v if v != null }
  resources   = { requests = merge(local.memory, { for k, v in { cpu = var.cpu } : k => v if v != null }), limits = local.memory }
  etcd_memory = { for k, v in { memory = try("${var.etcd.memory_mib}Mi", null) } : k => v if v != null }
  etcd_resources = {
    requests = merge(local.etcd_memory, { for k, v in { cpu = try(var.etcd.cpu, null) } : k => v if v != null })
    limits   = local.etcd_memory
  }
  backup = { for k, v in {
    enabled      = try(var.etcd.backup != null, false)
    schedule     = try(var.etcd.backup.schedule, null)
    keepDays     = try(var.etcd.backup.keep_days, null)
    image        = try(var.etcd.backup.image, null)
    claim        = try(var.etcd.backup.claim, null)
    storage      = try(var.etcd.backup.storage, null)
    storageClass = try(var.etcd.backup.storage_class, null)
  } : k => v if v != null }
}
