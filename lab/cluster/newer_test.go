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
	runStage(t, Options{}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.WaitInSync(2 * time.Minute))
		id := network + "loadBalancers/" + clusterName
		text, _ := s.emulator.Get(id)
		tracked := strings.ReplaceAll(string(text), `"publicIPAddress"`, `"enableConnectionTracking":true,"publicIPAddress"`)
		failOn(s.emulator.Put(id, []byte(tracked)))
		failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8080 }))
		failOn(s.WaitInSync(2 * time.Minute))
		if text, _ = s.emulator.Get(id); !strings.Contains(string(text), `"enableConnectionTracking":true`) || !strings.Contains(string(text), `"frontendPort":8080`) {
			failOn(fmt.Errorf("Azure has %s", text))
		}
	})
}

// If Azure does not support the api-version, the Service reports the property and Azure's message.
func TestAPropertyThatWeirCannotWrite(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.WaitInSync(2 * time.Minute))
		failOn(s.AzureFaults(`{match: {method: PUT, path: "*/loadBalancers/*"}, action: {status: 400, code: UpdateOnResourceNotAllowedWithApiVersion, message: "Resource x cannot be updated using API version 2025-05-01 since it uses the property p which has been set using a higher API version 2031-01-01."}}`))
		failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8080 }))
		s.Sleep(time.Minute)
		var svc corev1.Service
		failOn(s.userClient.Get(ctx, parseKey("shop/web"), &svc))
		message := fmt.Sprint(svc.Status.Conditions)
		for _, want := range []string{"UpdateOnResourceNotAllowedWithApiVersion", "another tool", "the property p"} {
			if !strings.Contains(message, want) {
				failOn(errors.New("the Service does not say " + want + ": " + message))
			}
		}
		failOn(s.AzureFaults())
		failOn(s.WaitInSync(10 * time.Minute))
	})
}
