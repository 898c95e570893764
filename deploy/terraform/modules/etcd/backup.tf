locals {
  backup_selector = {
    "app.kubernetes.io/name"     = "etcd-backup"
    "app.kubernetes.io/instance" = var.labels["app.kubernetes.io/instance"]
  }
  backup_labels = merge(var.labels, local.backup_selector)

  # The name of all members: whichever answers.
  backup_args = concat([
    "snapshot", "save", "/backup/$(POD_NAME).db",
    "--endpoints=${local.scheme}://${local.domain}:2379",
    "--dial-timeout=10s",
    "--command-timeout=10m",
    ], var.etcd.tls_secret == null ? [] : [
    "--cacert=/etc/etcd/tls/ca.crt",
    "--cert=/etc/etcd/tls/tls.crt",
    "--key=/etc/etcd/tls/tls.key",
  ])
}

# A snapshot has all that is in the store, the key of the lock tokens too: who reads it can
# renew and release every lock.
resource "kubernetes_cron_job_v1" "backup" {
  count = var.etcd.backup == null ? 0 : 1

  metadata {
    name      = "${var.name}-backup"
    namespace = var.namespace
    labels    = local.backup_labels
  }
  spec {
    schedule                      = var.etcd.backup.schedule
    concurrency_policy            = "Forbid"
    successful_jobs_history_limit = 3
    failed_jobs_history_limit     = 3
    starting_deadline_seconds     = 600

    job_template {
      metadata {
        labels = local.backup_labels
      }
      spec {
        backoff_limit           = 3
        active_deadline_seconds = 1200

        template {
          metadata {
            labels = local.backup_labels
          }
          spec {
            restart_policy                  = "Never"
            automount_service_account_token = false
            enable_service_links            = false

            security_context {
              run_as_non_root        = true
              run_as_user            = "65532"
              run_as_group           = "65532"
              fs_group               = "65532"
              fs_group_change_policy = "OnRootMismatch"
              seccomp_profile {
                type = "RuntimeDefault"
              }
            }

            container {
              name    = "snapshot"
              image   = var.etcd.image
              command = ["/usr/local/bin/etcdctl"]
              args    = local.backup_args

              env { # has the minute in it for which the job was due
                name = "POD_NAME"
                value_from {
                  field_ref {
                    field_path = "metadata.name"
                  }
                }
              }

              resources {
                requests = { cpu = "50m", memory = "64Mi" }
                limits   = { memory = "256Mi" }
              }

              security_context {
                allow_privilege_escalation = false
                read_only_root_filesystem  = true
                run_as_non_root            = true
                capabilities {
                  drop = ["ALL"]
                }
              }

              volume_mount {
                name       = "backup"
                mount_path = "/backup"
              }
              dynamic "volume_mount" {
                for_each = var.etcd.tls_secret == null ? [] : ["tls"]
                content {
                  name       = "tls"
                  mount_path = "/etc/etcd/tls"
                  read_only  = true
                }
              }
            }

            # Before the snapshot, so that there is room for it.
            init_container {
              name    = "prune"
              image   = var.etcd.backup.image
              command = ["find", "/backup", "-name", "*.db", "-mtime", "+${var.etcd.backup.keep_days}", "-delete"]

              resources {
                requests = { cpu = "10m", memory = "16Mi" }
                limits   = { memory = "32Mi" }
              }

              security_context {
                allow_privilege_escalation = false
                read_only_root_filesystem  = true
                run_as_non_root            = true
                capabilities {
                  drop = ["ALL"]
                }
              }

              volume_mount {
                name       = "backup"
                mount_path = "/backup"
              }
            }

            volume {
              name = "backup"
              persistent_volume_claim {
                claim_name = var.etcd.backup.claim
              }
            }
            dynamic "volume" {
              for_each = var.etcd.tls_secret == null ? [] : [var.etcd.tls_secret]
              content {
                name = "tls"
                secret {
                  secret_name  = volume.value
                  default_mode = "0440"
                }
              }
            }
          }
        }
      }
    }
  }
}
