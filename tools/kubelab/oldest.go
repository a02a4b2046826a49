// SPDX-License-Identifier: Apache-2.0

//go:build oldest

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/controller/job"
)

func newJobController(ctx context.Context, client kubernetes.Interface, shared informers.SharedInformerFactory) (*job.Controller, error) {
	return job.NewController(ctx, shared.Core().V1().Pods(), shared.Batch().V1().Jobs(), client)
}

func hasUntoleratedTaint(taints []corev1.Taint, tolerations []corev1.Toleration, filter func(*corev1.Taint) bool) bool {
	_, found := corev1helpers.FindMatchingUntoleratedTaint(taints, tolerations, filter)
	return found
}

// kubectlVerbosity returns no verbosity: this kubectl logs nothing before it parses its flags.
func kubectlVerbosity([]string) string { return "0" }
