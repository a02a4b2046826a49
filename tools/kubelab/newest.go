// SPDX-License-Identifier: Apache-2.0

//go:build !oldest

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubernetes/pkg/controller/job"
)

// These functions have other signatures in the oldest supported version of Kubernetes: see oldest.go.

func newJobController(ctx context.Context, client kubernetes.Interface, shared informers.SharedInformerFactory) (*job.Controller, error) {
	// Only the feature gate WorkloadWithJob needs the last two.
	return job.NewController(ctx, client, shared.Core().V1().Pods(), shared.Batch().V1().Jobs(), nil, nil)
}

func hasUntoleratedTaint(taints []corev1.Taint, tolerations []corev1.Toleration, filter func(*corev1.Taint) bool) bool {
	_, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), taints, tolerations, filter, true)
	return found
}

func kubectlVerbosity(args []string) string { return kubectl.GetLogVerbosity(args) }
