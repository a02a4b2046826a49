// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodePortsAreExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		services := newClient(t, newServer(t), "one").Services("default")
		create := func(name string, ports int32) error {
			svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
			for i := range ports {
				svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: i + 1})
			}
			_, err := services.Create(t.Context(), svc, metav1.CreateOptions{})
			return err
		}
		if err := create("all", lastNodePort-firstNodePort+1); err != nil {
			t.Fatal(err)
		}
		if err := create("one", 1); err == nil || !strings.Contains(err.Error(), "range is full") {
			t.Errorf("beyond the range: %v", err)
		}
	})
}
