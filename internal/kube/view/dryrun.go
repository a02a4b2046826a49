// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/service"
)

// DryRun reports whether all that a Service has in Azure stays as it is. A value that nobody
// can read may mean that. One that is being deleted goes: to keep it would change nothing.
func DryRun(s *corev1.Service) bool {
	value := strings.TrimSpace(s.Annotations[DryRunAnnotation])
	return value != "" && !strings.EqualFold(value, "false") && s.DeletionTimestamp == nil
}

// DryRunValid reports whether people can read that all of a Service stays as it is.
func DryRunValid(s *corev1.Service) bool { return DryRun(s) && len(DryRunProblems(s)) == 0 }

// DryRunProblems says what is wrong with the annotation.
func DryRunProblems(s *corev1.Service) []service.Problem {
	if value := s.Annotations[DryRunAnnotation]; DryRun(s) && !strings.EqualFold(strings.TrimSpace(value), "true") {
		return []service.Problem{{Field: DryRunAnnotation, Value: value, Want: `"true" or "false"`}}
	}
	return nil
}

// AllowsRemoval reports whether a Service lets its own addresses be taken away.
func AllowsRemoval(s *corev1.Service) bool {
	return strings.EqualFold(strings.TrimSpace(s.Annotations[AllowRemovalAnnotation]), "true")
}

// NotCreated reports whether no API server has seen a Service yet.
func NotCreated(s *corev1.Service) bool { return s.Annotations[NotCreatedAnnotation] != "" }
