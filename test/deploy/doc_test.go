// Package deploy_test holds what is under deploy/ against the program that it deploys: its
// flags, the figures that it shows, and the runbook. What needs Helm, Terraform or root is
// in `make deploy-test`.
package deploy_test
