// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

// DryRun reports whether the resources of a Service must not change. An invalid value counts as true. A
// deleted Service is cleaned up anyway.
func DryRun(s *corev1.Service) bool {
	value := strings.TrimSpace(s.Annotations[metadata.DryRunAnnotation])
	return value != "" && !strings.EqualFold(value, "false") && s.DeletionTimestamp == nil
}

// DryRunValid reports whether the Service has a valid dry-run annotation set to true.
func DryRunValid(s *corev1.Service) bool { return DryRun(s) && len(DryRunProblems(s)) == 0 }

// DryRunProblems returns the problems of the annotation.
func DryRunProblems(s *corev1.Service) []service.Problem {
	if value := s.Annotations[metadata.DryRunAnnotation]; DryRun(s) && !strings.EqualFold(strings.TrimSpace(value), "true") {
		return []service.Problem{{Field: metadata.DryRunAnnotation, Value: value, Expected: `"true" or "false"`}}
	}
	return nil
}

// AllowsRemoval reports whether a Service allows removing its addresses.
func AllowsRemoval(s *corev1.Service) bool {
	return strings.EqualFold(strings.TrimSpace(s.Annotations[AllowRemovalAnnotation]), "true")
}

// NotCreated reports whether a Service comes from a file, not from an API server.
func NotCreated(s *corev1.Service) bool { return s.Annotations[metadata.NotCreatedAnnotation] != "" }
