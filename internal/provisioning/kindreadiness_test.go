// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestReadinessOfKinds(t *testing.T) {
	const ready, never = "ready", "never: "
	both := func(want string) [2]string { return [2]string{want, want} }
	for about, tt := range map[string]struct {
		object string
		want   [2]string // for manifests and wait steps
	}{
		"a Job that has begun":        {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: x, active: 1}}", both("the Job is not Complete")},
		"a Job that has not":          {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}}", both("Job not started")},
		"a Job that is suspended":     {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {suspend: true}, status: {conditions: [{type: Suspended, status: 'True'}]}}", both("Job not started")},
		"a Job with enough successes": {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: x, succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: 'True'}]}}", both("the Job is not Complete")},
		"a Job that is Complete":      {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: x, succeeded: 1, conditions: [{type: Complete, status: 'True'}]}}", both(ready)},
		"a Job that has failed":       {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: x, failed: 1, conditions: [{type: Failed, status: 'True'}]}}", both(never + "Job Failed")},
		"a CronJob":                   {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}}", both(ready)},
		"a Pod that runs":             {"{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running}}", both("Pod is running but is not Ready")},
		"a Pod that is Ready":         {"{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}", both(ready)},
		"a Pod that has completed":    {"{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Succeeded}}", both(ready)},
		"a Pod that has failed":       {"{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Failed}}", both(never + "the Pod has failed")},
		"a claim that is new":         {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}", both("the claim is not Bound")},
		"a claim that is Pending":     {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Pending}}", [2]string{ready, "the claim is not Bound"}},
		"a claim that is Bound":       {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Bound}}", both(ready)},
		"a claim that is Lost":        {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Lost}}", both(never + "the claim has lost its volume")},
		"a volume that is Pending":    {"{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, status: {phase: Pending}}", both("the volume is not Available")},
		"a volume":                    {"{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, status: {phase: Available}}", both(ready)},
		"a volume that has failed":    {"{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, status: {phase: Failed}}", both(never + "the volume has failed")},
		"a load balancer":             {"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}}", [2]string{ready, "the Service has no address of a load balancer"}},
		"that has an address":         {"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}", both(ready)},
		"a Service":                   {"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}", both(ready)},
		"a Deployment of none":        {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {replicas: 0}, status: {conditions: [{type: Available, status: 'True'}]}}", both("no controller has seen it yet")},
		"a ReplicaSet of none":        {"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, generation: 1}, spec: {replicas: 0}}", both("no controller has seen it yet")},
		"that is seen":                {"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1}}", both(ready)},
		"a StatefulSet of none":       {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 0}}", both("no controller has seen it yet")},
		"OnDelete, new":               {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}}", both("no controller has seen it yet")},
		"OnDelete, one is ready":      {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, readyReplicas: 1}}", both("1 of 2 replicas are ready")},
		"OnDelete, both are":          {"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, readyReplicas: 2}}", both(ready)},
		"a ReplicationController":     {"{apiVersion: v1, kind: ReplicationController, metadata: {name: a, generation: 1}, status: {observedGeneration: 1}}", both("0 of 1 replicas are ready")},
		"a budget, new":               {"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, generation: 1}}", both("no controller has seen it yet")},
		"a budget":                    {"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, generation: 1}, status: {observedGeneration: 1}}", both(ready)},
		"an APIService, new":          {"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}}", both("the APIService is not Available")},
		"an APIService":               {"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, status: {conditions: [{type: Available, status: 'True'}]}}", both(ready)},
		"a definition, new":           {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}", both("Install in progress")},
		"a custom resource":           {"{apiVersion: x.io/v1, kind: Thing, metadata: {name: a, generation: 2}}", both(ready)},
		"of an earlier generation":    {"{apiVersion: x.io/v1, kind: Thing, metadata: {name: a, generation: 2}, status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}}", both("Thing generation is 2, but latest observed generation is 1")},
		"its condition is":            {"{apiVersion: x.io/v1, kind: Thing, metadata: {name: a, generation: 2}, status: {conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}}", both("its condition Ready is about an earlier generation")},
		"its condition is new":        {"{apiVersion: x.io/v1, kind: Thing, metadata: {name: a, generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True', observedGeneration: 2}]}}", both(ready)},
		"it is not Ready":             {"{apiVersion: x.io/v1, kind: Thing, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'False', message: busy}]}}", both("busy")},
		"it is deleted":               {"{apiVersion: x.io/v1, kind: Thing, metadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}}", both("Resource scheduled for deletion")},
	} {
		t.Run(about, func(t *testing.T) {
			u := objectFrom(t, tt.object)
			for n, waited := range []bool{false, true} {
				isReady, reason, err := checkReadiness(u, false, waited)
				got := reason
				switch {
				case err != nil:
					got = never + err.Error()
				case isReady:
					got = ready
				}
				if !strings.HasPrefix(got, tt.want[n]) || isReady != (tt.want[n] == ready) {
					t.Errorf("waited %t: %q, want %q", waited, got, tt.want[n])
				}
			}
		})
	}
}

// A wait step ignores conditions of an earlier generation.
func TestConditionsOfAnEarlierGeneration(t *testing.T) {
	for text, want := range map[string]bool{
		"{metadata: {generation: 2}, status: {conditions: [{type: Done, status: 'True'}]}}":                                               true,
		"{metadata: {generation: 2}, status: {observedGeneration: 1, conditions: [{type: Done, status: 'True'}]}}":                        false,
		"{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Done, status: 'True', observedGeneration: 1}]}}": false,
		"{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Done, status: 'True', observedGeneration: 2}]}}": true,
		"{metadata: {generation: 2}, status: {conditions: [{type: Done, status: 'False'}]}}":                                              false,
	} {
		u := objectFrom(t, text)
		if isReady := checkGeneration(u) == "" && conditionOf(u, "Done") == "True"; isReady != want {
			t.Errorf("%s: %t", text, isReady)
		}
	}
}

func objectFrom(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if u.GetKind() == "" && !strings.Contains(text, "kind:") {
		raw = []byte(strings.Replace(string(raw), "{", `{"apiVersion":"x.io/v1","kind":"Thing",`, 1))
	}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}
