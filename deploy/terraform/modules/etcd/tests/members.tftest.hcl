mock_provider "kubernetes" {}

variables {
  name             = "fencepost-etcd"
  namespace        = "locks"
  labels           = { "app.kubernetes.io/instance" = "fencepost" }
  clients          = { "app.kubernetes.io/name" = "fencepost" }
  metrics_from     = ["monitoring"]
  network_policies = true
  etcd = {
    image           = "quay.io/coreos/etcd:v3.7.3", members = 3, storage = "20Gi", quota_mib = 4096, cpu = "500m", memory_mib = 2048
    peer_tls_secret = "peer", tls_secret = "tls", backup = { claim = "backup", schedule = "0 * * * *", keep_days = 7, image = "busybox:1.37.0" }
  }
}

run "what_operations_asks_for" {
  command = plan

  assert {
    condition = alltrue([for a in ["--auto-compaction-mode=periodic", "--auto-compaction-retention=10m", "--quota-backend-bytes=4294967296"] :
    contains(kubernetes_stateful_set_v1.etcd.spec[0].template[0].spec[0].container[0].args, a)])
    error_message = "The index grows without end, or the disk fills."
  }
}

run "tls" {
  command = plan

  assert {
    condition     = alltrue([for a in kubernetes_stateful_set_v1.etcd.spec[0].template[0].spec[0].container[0].args : !strcontains(a, "http://") || startswith(a, "--listen-metrics-urls=")])
    error_message = "Something beside the metrics is served without TLS."
  }
  assert {
    condition     = length(setintersection(kubernetes_stateful_set_v1.etcd.spec[0].template[0].spec[0].container[0].args, ["--client-cert-auth", "--peer-client-cert-auth"])) == 2
    error_message = "Whoever reaches a member may use it."
  }
  assert {
    condition     = contains(kubernetes_cron_job_v1.backup[0].spec[0].job_template[0].spec[0].template[0].spec[0].container[0].args, "--cacert=/etc/etcd/tls/ca.crt")
    error_message = "The backup does not speak TLS."
  }
}

run "one_member_at_a_time" {
  command = plan

  assert {
    condition     = kubernetes_pod_disruption_budget_v1.etcd.spec[0].max_unavailable == "1"
    error_message = "A drained node may take the quorum."
  }
  assert {
    condition     = kubernetes_stateful_set_v1.etcd.spec[0].template[0].spec[0].affinity[0].pod_anti_affinity[0].required_during_scheduling_ignored_during_execution[0].topology_key == "kubernetes.io/hostname"
    error_message = "A lost node may take the quorum."
  }
  assert {
    condition = anytrue([for c in kubernetes_stateful_set_v1.etcd.spec[0].template[0].spec[0].topology_spread_constraint :
      c.topology_key == "topology.kubernetes.io/zone" && c.max_skew == 1 && c.label_selector[0].match_labels == kubernetes_stateful_set_v1.etcd.spec[0].selector[0].match_labels
    ])
    error_message = "A lost zone may take the quorum."
  }
  assert {
    condition     = kubernetes_pod_disruption_budget_v1.etcd.spec[0].selector[0].match_labels == kubernetes_stateful_set_v1.etcd.spec[0].selector[0].match_labels
    error_message = "The budget is that of other pods."
  }
  assert {
    condition     = kubernetes_stateful_set_v1.etcd.spec[0].persistent_volume_claim_retention_policy[0].when_deleted == "Retain"
    error_message = "The data goes with the set."
  }
}

run "only_replicas_and_members" {
  command = plan

  assert {
    condition     = length(kubernetes_network_policy_v1.etcd[0].spec[0].ingress[0].from) == 2 && kubernetes_network_policy_v1.etcd[0].spec[0].ingress[0].from[0].pod_selector[0].match_labels["app.kubernetes.io/name"] == "fencepost"
    error_message = "Others than the replicas and the backup may use the cluster."
  }
}
