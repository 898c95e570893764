package main

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// kind is what a resource of Terraform is called in Kubernetes.
type kind struct {
	version, name string
	of            reflect.Type
}

func kindOf[T any](version, name string) kind {
	return kind{version: version, name: name, of: reflect.TypeFor[T]()}
}

func kinds() map[string]kind {
	return map[string]kind{
		"kubernetes_config_map_v1": kindOf[corev1.ConfigMap]("v1", "ConfigMap"),
		"kubernetes_cron_job_v1":   kindOf[batchv1.CronJob]("batch/v1", "CronJob"),
		"kubernetes_deployment_v1": kindOf[appsv1.Deployment]("apps/v1", "Deployment"),
		"kubernetes_horizontal_pod_autoscaler_v2": kindOf[autoscalingv2.HorizontalPodAutoscaler](
			"autoscaling/v2", "HorizontalPodAutoscaler",
		),
		"kubernetes_ingress_v1": kindOf[networkingv1.Ingress](
			"networking.k8s.io/v1", "Ingress",
		),
		"kubernetes_network_policy_v1": kindOf[networkingv1.NetworkPolicy](
			"networking.k8s.io/v1", "NetworkPolicy",
		),
		"kubernetes_persistent_volume_claim_v1": kindOf[corev1.PersistentVolumeClaim](
			"v1", "PersistentVolumeClaim",
		),
		"kubernetes_pod_disruption_budget_v1": kindOf[policyv1.PodDisruptionBudget](
			"policy/v1", "PodDisruptionBudget",
		),
		"kubernetes_service_account_v1": kindOf[corev1.ServiceAccount]("v1", "ServiceAccount"),
		"kubernetes_service_v1":         kindOf[corev1.Service]("v1", "Service"),
		"kubernetes_stateful_set_v1":    kindOf[appsv1.StatefulSet]("apps/v1", "StatefulSet"),
	}
}

// empty returns a pointer to a new object of the kind.
func (k kind) empty() any { return reflect.New(k.of).Interface() }

func (k kind) object(values map[string]any) (map[string]any, error) {
	// What only Terraform reads.
	for _, name := range []string{
		"id", "timeouts", "wait_for_rollout", "wait_for_load_balancer", "wait_until_bound",
	} {
		delete(values, name)
	}
	object, err := structure(k.of, values)
	if err != nil {
		return nil, err
	}
	// The provider plans this for every service; Kubernetes takes it of load balancers only.
	if spec, ok := object["spec"].(map[string]any); ok && k.name == "Service" &&
		spec["type"] != "LoadBalancer" {
		delete(spec, "allocateLoadBalancerNodePorts")
	}
	object["apiVersion"], object["kind"] = k.version, k.name
	return object, nil
}
