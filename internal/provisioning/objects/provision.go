// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/provisioning/policy"
)

// ProvisionerCacheOptions returns the cache options of the provisioner: Provisions, their policies and
// Namespaces. Reading another type is an error instead of a new watch.
func ProvisionerCacheOptions() cache.Options {
	return cache.Options{
		Scheme:                      metadata.Scheme(),
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Provision{}: {Transform: metadata.Strip(StripProvision)},
			&corev1.Namespace{}:   {Transform: metadata.Strip(metadata.StripNamespace)},
			&v1alpha1.ProvisioningPolicy{}: {Transform: metadata.Strip(func(p *v1alpha1.ProvisioningPolicy) {
				p.TypeMeta, p.ObjectMeta = metav1.TypeMeta{}, metadata.Identity(p.ObjectMeta, nil)
			})},
		},
	}
}

const maxRequest = 64

func cutRequest(value string) string {
	return strings.ToValidUTF8(strings.Clone(value[:min(len(value), maxRequest)]), "") // drop a truncated character, which JSON would replace
}

// ProvisionRequests returns the requests in the annotations of a Provision.
func ProvisionRequests(p *v1alpha1.Provision) policy.Requests {
	of := func(name string) string { return cutRequest(p.Annotations[name]) }
	return policy.Requests{Cancel: of(v1alpha1.CancelAnnotation), RetryNow: of(v1alpha1.RetryNowAnnotation), Reset: of(v1alpha1.ResetAnnotation)}
}

// HasOpenRequest reports whether a request of the Provision has no response in the status.
func HasOpenRequest(p *v1alpha1.Provision) bool {
	s := &p.Status
	return ProvisionRequests(p) != policy.Requests{Cancel: s.LastHandledCancelAt, RetryNow: s.LastHandledRetryNowAt, Reset: s.LastHandledResetAt}
}

// maxSpec limits the spec of a Provision, in bytes of JSON: each attempt holds a copy.
const maxSpec = 128 << 10

// Wanted is the digest of target and steps of a Provision, and why they are rejected.
type Wanted struct {
	Job       string
	Rejection error
}

// StepsOf returns the steps of a Provision with dependencies.
func StepsOf(p *v1alpha1.Provision) []policy.Step {
	steps := make([]policy.Step, len(p.Spec.Steps))
	for i, s := range p.Spec.Steps {
		steps[i] = policy.Step{Name: s.Name, DependsOn: s.DependsOn}
	}
	return steps
}

// ParseWanted returns the Wanted of an unstripped Provision.
func ParseWanted(p *v1alpha1.Provision) Wanted {
	_, err := policy.OrderSteps(StepsOf(p))
	if text, _ := json.Marshal(p.Spec); len(text) > maxSpec { // API types always marshal
		err = errors.Join(err, fmt.Errorf("the spec has %d KiB as JSON, and at most %d KiB: move manifests, values and scripts to ConfigMaps", len(text)>>10, maxSpec>>10))
	}
	return Wanted{policy.Digest(p.Spec.Target) + "/" + policy.Digest(p.Spec.Steps), err}
}

// Annotations of a cached Provision, which has no steps. StripProvision sets them from the spec and drops
// those of users.
const (
	cachedJob       = "job"
	cachedRejection = "refusal"
)

// CachedWanted returns the Wanted of a cached Provision.
func CachedWanted(p *v1alpha1.Provision) Wanted {
	wanted := Wanted{Job: p.Annotations[cachedJob]}
	if reason := p.Annotations[cachedRejection]; reason != "" {
		wanted.Rejection = errors.New(reason)
	}
	return wanted
}

var requestAnnotations = []string{v1alpha1.CancelAnnotation, v1alpha1.RetryNowAnnotation, v1alpha1.ResetAnnotation}

// StripProvision keeps the inputs of decisions; step details are read again when needed. Of the conditions it
// keeps the one that does not follow from the status.
func StripProvision(p *v1alpha1.Provision) {
	annotations, wanted := p.Annotations, ParseWanted(p)
	p.TypeMeta, p.ObjectMeta = metav1.TypeMeta{}, metadata.Identity(p.ObjectMeta, nil)
	keep := func(name, value string) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[name] = value
	}
	if wanted.Job != "" {
		keep(cachedJob, metadata.Intern(wanted.Job)) // many have the same steps
	}
	for _, name := range requestAnnotations {
		if value, ok := annotations[name]; ok {
			keep(name, cutRequest(value))
		}
	}
	if wanted.Rejection != nil {
		keep(cachedRejection, wanted.Rejection.Error())
	}
	p.Annotations = sameAnnotations(p.Annotations)
	p.Spec.Steps = nil
	s := &p.Status
	s.Steps, s.State = nil, metadata.Intern(s.State)
	s.Policy = samePolicy(s.Policy)
	var kept []metav1.Condition
	if accepted := meta.FindStatusCondition(s.Conditions, v1alpha1.ProvisionAccepted); accepted != nil {
		accepted.Type, accepted.Reason, accepted.Message = metadata.Intern(accepted.Type), metadata.Intern(accepted.Reason), metadata.Intern(accepted.Message)
		accepted.Status = metadata.Intern(accepted.Status)
		kept = []metav1.Condition{*accepted}
	}
	s.Conditions = kept
}

var lastAnnotations atomic.Pointer[map[string]string]

// sameAnnotations returns equal annotations, shared with other Provisions if possible.
func sameAnnotations(of map[string]string) map[string]string {
	if last := lastAnnotations.Load(); last != nil && maps.Equal(*last, of) {
		return *last
	}
	lastAnnotations.Store(&of)
	return of
}

// lastPolicy is the last stored policy, equal to most others.
var lastPolicy atomic.Pointer[[]v1alpha1.PolicyValue]

// samePolicy returns equal values, shared if possible. Cached objects are not modified.
func samePolicy(values []v1alpha1.PolicyValue) []v1alpha1.PolicyValue {
	if last := lastPolicy.Load(); last != nil && slices.Equal(*last, values) {
		return *last
	}
	values = slices.Clone(values)
	for i := range values {
		v := &values[i]
		v.Name, v.Value, v.From = metadata.Intern(v.Name), metadata.Intern(v.Value), metadata.Intern(v.From)
	}
	lastPolicy.Store(&values)
	return values
}

// HasRetryAfter reports whether the target's Retry-After sets the time of the next attempt.
func HasRetryAfter(p *v1alpha1.Provision) bool {
	next, notBefore := p.Status.NextAttemptAt, p.Status.NotBefore // next is rounded up to a second
	return next != nil && notBefore != nil && next.Sub(notBefore.Time) < time.Second
}
