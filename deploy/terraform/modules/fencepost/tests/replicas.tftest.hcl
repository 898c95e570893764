mock_provider "kubernetes" {}

variables {
  name               = "fencepost"
  namespace          = "locks"
  labels             = { "app.kubernetes.io/instance" = "fencepost" }
  image              = "fencepost:v1.2.3"
  replicas           = 2
  cpu                = "500m"
  memory_mib         = 1000
  auth               = { jwt_secret = { name = "jwt", key = "secret" } }
  tls                = null
  oidc               = null
  quotas             = {}
  token_key_secret   = null
  store              = { address = "etcd://etcd-1:2379,etcd-2:2380", ca_secret = "ca", client_tls_secret = "client" }
  store_network      = { cidr = "10.9.0.0/24" }
  max_ttl_seconds    = 3600
  drain              = { delay_seconds = 5, seconds = 20 }
  log_level          = "info"
  trusted_proxy_hops = 0
  webhooks           = { allow = [], allow_http = false, ports = [] }
  otlp_endpoint      = null
  autoscaling        = null
  ingress            = null
  network_policies   = { enabled = true, from_namespaces = [], metrics_from = ["monitoring"], egress = [], private_ranges = ["10.0.0.0/8"] }
}

run "a_store_that_is_away_restarts_nobody" {
  command = plan

  assert {
    condition = alltrue([for p in concat(
      kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].liveness_probe,
      kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].startup_probe,
    ) : p.http_get[0].path == "/healthz"])
    error_message = "A probe that restarts asks for more than whether the process lives."
  }
  assert {
    condition     = kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].readiness_probe[0].http_get[0].path == "/readyz"
    error_message = "Requests are sent to replicas that cannot serve them."
  }
}

run "time_to_end" {
  command = plan

  variables {
    drain = { delay_seconds = 30, seconds = 60 }
  }
  assert {
    condition     = kubernetes_deployment_v1.api.spec[0].template[0].spec[0].termination_grace_period_seconds > 90
    error_message = "A replica is killed while it drains."
  }
  assert {
    condition     = kubernetes_deployment_v1.api.spec[0].strategy[0].rolling_update[0].max_unavailable == "0"
    error_message = "An update takes replicas away."
  }
}

run "spread" {
  command = plan

  assert {
    condition = toset([for c in kubernetes_deployment_v1.api.spec[0].template[0].spec[0].topology_spread_constraint : c.topology_key]) == toset([
      "topology.kubernetes.io/zone", "kubernetes.io/hostname",
    ])
    error_message = "A zone or a node may have all replicas."
  }
  assert {
    condition = alltrue([for c in kubernetes_deployment_v1.api.spec[0].template[0].spec[0].topology_spread_constraint :
      c.max_skew == 1 && c.when_unsatisfiable == "ScheduleAnyway" && c.label_selector[0].match_labels == kubernetes_deployment_v1.api.spec[0].selector[0].match_labels
    ])
    error_message = "Others than the replicas are counted, or in a cluster of one zone none is placed."
  }
}

run "one_replica_at_a_time" {
  command = plan

  assert {
    condition     = kubernetes_pod_disruption_budget_v1.api.spec[0].max_unavailable == "1"
    error_message = "Drained nodes may take all replicas at once."
  }
  assert {
    condition     = kubernetes_pod_disruption_budget_v1.api.spec[0].selector[0].match_labels == kubernetes_deployment_v1.api.spec[0].selector[0].match_labels
    error_message = "The budget is that of other pods."
  }
}

run "restricted" {
  command = plan

  assert {
    condition = (
      kubernetes_deployment_v1.api.spec[0].template[0].spec[0].security_context[0].run_as_non_root &&
      kubernetes_deployment_v1.api.spec[0].template[0].spec[0].security_context[0].seccomp_profile[0].type == "RuntimeDefault" &&
      kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].security_context[0].read_only_root_filesystem &&
      !kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].security_context[0].allow_privilege_escalation &&
      contains(kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].security_context[0].capabilities[0].drop, "ALL") &&
      !kubernetes_deployment_v1.api.spec[0].template[0].spec[0].automount_service_account_token
    )
    error_message = "The pods may do more than they need."
  }
  assert {
    condition     = alltrue([for v in kubernetes_deployment_v1.api.spec[0].template[0].spec[0].volume : v.secret[0].default_mode == "0440" if length(v.secret) > 0])
    error_message = "Files of secrets can be read by others."
  }
  assert {
    condition     = contains(kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].args, "--store-key=/etc/fencepost/store-tls/tls.key")
    error_message = "The certificate for the store is not shown to it."
  }
}

run "the_store_can_be_reached" {
  command = plan

  assert {
    condition     = length([for e in kubernetes_network_policy_v1.api[0].spec[0].egress : e if try(e.to[0].ip_block[0].cidr, "") == "10.9.0.0/24" && contains(["2379", "2380"], e.ports[0].port)]) == 2
    error_message = "The policy does not let replicas reach both ports of the store."
  }
  assert {
    condition     = anytrue([for e in kubernetes_network_policy_v1.api[0].spec[0].egress : try(e.ports[0].port == "443" && contains(e.to[0].ip_block[0].except, "10.0.0.0/8"), false)])
    error_message = "Webhooks may go to private addresses, or nowhere."
  }
}

run "webhooks_as_the_server_has_them" {
  command = plan

  variables {
    webhooks = { allow = ["10.1.0.0/16", "10.2.0.0/16"], allow_http = true, ports = [443, 8443] }
  }
  assert {
    condition     = contains(kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].args, "--webhook-allow=10.1.0.0/16,10.2.0.0/16")
    error_message = "The server does not hear of the ranges."
  }
  assert {
    condition     = anytrue([for e in kubernetes_network_policy_v1.api[0].spec[0].egress : [for p in e.ports : p.port] == ["443", "80", "8443"] && contains([for t in e.to : t.ip_block[0].cidr], "10.2.0.0/16")])
    error_message = "The policy does not let through what the server allows."
  }
}

run "the_autoscaler_says_how_many" {
  command = plan

  variables {
    autoscaling = { max_replicas = 5, cpu_percent = 70, requests_per_replica = 4000 }
  }
  assert {
    condition     = kubernetes_horizontal_pod_autoscaler_v2.api[0].spec[0].min_replicas == 2 && length(kubernetes_horizontal_pod_autoscaler_v2.api[0].spec[0].metric) == 2
    error_message = "It does not go by processor time and requests."
  }
}

run "plain_http" {
  command = plan

  assert {
    condition     = !strcontains(join(" ", kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].args), "--tls-") && kubernetes_service_v1.api.spec[0].port[0].port == 80
    error_message = "There is TLS where none was asked for."
  }
}

run "tls_of_the_api" {
  command = plan

  variables {
    tls     = { secret = "api-tls", client_ca = { name = "clients", key = "ca.crt" }, principals = { name = "who", key = "principals.json" } }
    ingress = { host = "locks.example.com", class = "nginx", tls_secret = "edge", paths = ["/locks"], annotations = {} }
  }
  assert {
    condition = length(setsubtract([
      "--tls-cert=/etc/fencepost/tls/tls.crt", "--tls-key=/etc/fencepost/tls/tls.key", "--client-ca=/etc/fencepost/client-ca/ca.crt",
      "--principals=/etc/fencepost/principals/principals.json", "--ops-listen=0.0.0.0:9090",
    ], kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].args)) == 0
    error_message = "The server is not told all of it: ${join(" ", kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].args)}"
  }
  assert {
    condition = alltrue([for f in ["tls", "client-ca", "principals"] :
      contains([for m in kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].volume_mount : m.mount_path], "/etc/fencepost/${f}") &&
      contains([for v in kubernetes_deployment_v1.api.spec[0].template[0].spec[0].volume : v.name], f)
    ])
    error_message = "A file that the server is told of is not there."
  }
  assert {
    condition = alltrue([for p in concat(
      kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].liveness_probe,
      kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].startup_probe,
      kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].readiness_probe,
    ) : p.http_get[0].port == "ops"]) && kubernetes_deployment_v1.api.spec[0].template[0].metadata[0].annotations["prometheus.io/port"] == "9090"
    error_message = "Probes or Prometheus speak HTTP to a port that speaks TLS."
  }
  assert {
    condition     = anytrue([for i in kubernetes_network_policy_v1.api[0].spec[0].ingress : try(i.ports[0].port == "9090" && i.from[0].namespace_selector[0].match_labels["kubernetes.io/metadata.name"] == "monitoring", false)])
    error_message = "Prometheus does not reach the figures, or everybody does."
  }
  assert {
    condition     = kubernetes_service_v1.api.spec[0].port[0].port == 443 && kubernetes_ingress_v1.api[0].metadata[0].annotations["nginx.ingress.kubernetes.io/backend-protocol"] == "HTTPS"
    error_message = "What is in front speaks HTTP."
  }
}

run "operators_sign_in" {
  command = plan

  variables {
    oidc = {
      issuer       = "https://login.example.com", client_id = "fencepost", client_secret = { name = "oidc", key = "secret" }
      redirect_url = "https://locks.example.com/dashboard/sign-in/oidc/callback", principals = { name = "operators", key = "principals.json" }, scopes = ["profile", "groups"]
    }
  }
  assert {
    condition = length(setsubtract([
      "--oidc=issuer=https://login.example.com,client_id=fencepost,client_secret_file=/etc/fencepost/oidc/secret,principals=/etc/fencepost/oidc-principals/principals.json,redirect_url=https://locks.example.com/dashboard/sign-in/oidc/callback,scopes=profile groups",
    ], kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].args)) == 0
    error_message = "The server is not told all of it: ${join(" ", kubernetes_deployment_v1.api.spec[0].template[0].spec[0].container[0].args)}"
  }
  assert {
    condition     = contains([for v in kubernetes_deployment_v1.api.spec[0].template[0].spec[0].volume : try(v.config_map[0].name, "")], "operators")
    error_message = "The file of claims is not there."
  }
}
