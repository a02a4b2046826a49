// SPDX-License-Identifier: Apache-2.0

package services

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A condition is written only if status, reason, message or generation differ.
func TestConditionsAreWrittenOnChange(t *testing.T) {
	want := metav1.Condition{Type: "weir.dev/Programmed", Status: metav1.ConditionTrue, Reason: "Programmed", Message: "Azure has it (request id r1)", ObservedGeneration: 2}
	shows := &corev1.Service{Status: corev1.ServiceStatus{Conditions: []metav1.Condition{want, {Type: "example.com/Theirs"}}}}
	for _, tt := range []struct {
		about string
		edit  func(*metav1.Condition)
		want  bool
	}{
		{"the same", func(*metav1.Condition) {}, false},
		{"another status", func(c *metav1.Condition) { c.Status = metav1.ConditionFalse }, true},
		{"another reason", func(c *metav1.Condition) { c.Reason = "Failed" }, true},
		{"another request of Azure", func(c *metav1.Condition) { c.Message = "Azure has it (request id r2)" }, false},
		{"another request, and another status", func(c *metav1.Condition) { c.Message, c.Status = "Azure has it (request id r2)", metav1.ConditionFalse }, true},
		{"another message", func(c *metav1.Condition) { c.Message = "no" }, true},
		{"another generation", func(c *metav1.Condition) { c.ObservedGeneration = 3 }, true},
		{"it goes", func(c *metav1.Condition) { c.Message = "" }, true},
		{"what is not there goes", func(c *metav1.Condition) { c.Type, c.Message = "weir.dev/Accepted", "" }, false},
	} {
		next := want
		tt.edit(&next)
		if part := conditionPatch(shows, next, false); (part != nil) != tt.want {
			t.Errorf("%s: %v, want a write: %v", tt.about, part, tt.want)
		}
		if conditionPatch(shows, next, true) == nil {
			t.Errorf("%s: it is not written where the copy may be older than what was written last", tt.about)
		}
	}
}
