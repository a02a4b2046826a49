// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Another tool sets a frontend property with a newer api-version. Weir's changes keep it.
func TestAPropertyOfANewerAPIVersion(t *testing.T) {
	stage(t, Options{}, func(s *Stage) {
		must(s.AddNode(0))
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Settles(2 * time.Minute))
		id := network + "loadBalancers/" + clusterName
		text, _ := s.emu.Get(id)
		tracked := strings.ReplaceAll(string(text), `"publicIPAddress"`, `"enableConnectionTracking":true,"publicIPAddress"`)
		must(s.emu.Put(id, []byte(tracked)))
		must(s.ChangeService("shop/web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8080 }))
		must(s.Settles(2 * time.Minute))
		if text, _ = s.emu.Get(id); !strings.Contains(string(text), `"enableConnectionTracking":true`) || !strings.Contains(string(text), `"frontendPort":8080`) {
			must(fmt.Errorf("Azure has %s", text))
		}
	})
}

// If Azure does not support the api-version, the Service reports the property and Azure's message.
func TestAPropertyThatWeirCannotWrite(t *testing.T) {
	stage(t, Options{}, func(s *Stage) {
		must(s.AddNode(0))
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Settles(2 * time.Minute))
		must(s.AzureFaults(`{match: {method: PUT, path: "*/loadBalancers/*"}, action: {status: 400, code: UpdateOnResourceNotAllowedWithApiVersion, message: "Resource x cannot be updated using API version 2025-05-01 since it uses the property p which has been set using a higher API version 2031-01-01."}}`))
		must(s.ChangeService("shop/web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8080 }))
		s.Pass(time.Minute)
		var svc corev1.Service
		must(s.people.Get(ctx, split("shop/web"), &svc))
		says := fmt.Sprint(svc.Status.Conditions)
		for _, want := range []string{"UpdateOnResourceNotAllowedWithApiVersion", "another tool", "the property p"} {
			if !strings.Contains(says, want) {
				must(errors.New("the Service does not say " + want + ": " + says))
			}
		}
		must(s.AzureFaults())
		must(s.Settles(10 * time.Minute))
	})
}
