// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/once"
	"weir.dev/weir/internal/provision"
)

// ProvisionerCacheOptions are the options of the provisioner's cache: Provisions, their policies, and Namespaces.
// Reading anything else through the cache is an error, not a new watch.
func ProvisionerCacheOptions() cache.Options {
	return cache.Options{
		Scheme:                      Scheme(),
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Provision{}: {Transform: Strip(StripProvision)},
			&corev1.Namespace{}:   {Transform: Strip(stripNamespace)},
			&v1alpha1.ProvisioningPolicy{}: {Transform: Strip(func(p *v1alpha1.ProvisioningPolicy) {
				p.TypeMeta, p.ObjectMeta = metav1.TypeMeta{}, Identity(p.ObjectMeta, nil)
			})},
		},
	}
}

// maxRequest bounds the bytes of an annotation that are kept.
const maxRequest = 64

func cutRequest(value string) string {
	return strings.ToValidUTF8(strings.Clone(value[:min(len(value), maxRequest)]), "") // a character that is cut would come back as another
}

// ProvisionRequests returns the requests that the annotations of a Provision make.
func ProvisionRequests(p *v1alpha1.Provision) provision.Requests {
	of := func(name string) string { return cutRequest(p.Annotations[name]) }
	return provision.Requests{Cancel: of(v1alpha1.CancelAnnotation), RetryNow: of(v1alpha1.RetryNowAnnotation), Reset: of(v1alpha1.ResetAnnotation)}
}

// HasOpenRequest reports whether the status of a Provision does not answer all of its requests yet.
func HasOpenRequest(p *v1alpha1.Provision) bool {
	s := &p.Status
	return ProvisionRequests(p) != provision.Requests{Cancel: s.LastHandledCancelAt, RetryNow: s.LastHandledRetryNowAt, Reset: s.LastHandledResetAt}
}

// maxSpec bounds the spec of a Provision, in bytes of JSON: each attempt holds one.
const maxSpec = 128 << 10

// Wanted is a digest of the target and the steps of a Provision, and why they are not accepted.
type Wanted struct {
	Job     string
	Refused error
}

// StepsOf returns the names of the steps of a Provision, and what they depend on.
func StepsOf(p *v1alpha1.Provision) []provision.Step {
	steps := make([]provision.Step, len(p.Spec.Steps))
	for i, s := range p.Spec.Steps {
		steps[i] = provision.Step{Name: s.Name, DependsOn: s.DependsOn}
	}
	return steps
}

// WantedOf reads the spec of a Provision that is not from the cache.
func WantedOf(p *v1alpha1.Provision) Wanted {
	_, err := provision.OrderOf(StepsOf(p))
	if text, _ := json.Marshal(p.Spec); len(text) > maxSpec { // values of the API have JSON
		err = errors.Join(err, fmt.Errorf("the spec has %d KiB as JSON, and at most %d KiB: move manifests, values and scripts to ConfigMaps", len(text)>>10, maxSpec>>10))
	}
	return Wanted{provision.Digest(p.Spec.Target) + "/" + provision.Digest(p.Spec.Steps), err}
}

// Annotations of a Provision in the cache, which has no steps. StripProvision sets them from the spec and drops those of users.
const (
	cachedJob     = "job"
	cachedRefusal = "refusal"
)

// CachedWantedOf returns the Wanted of a Provision from the cache.
func CachedWantedOf(p *v1alpha1.Provision) Wanted {
	is := Wanted{Job: p.Annotations[cachedJob]}
	if why := p.Annotations[cachedRefusal]; why != "" {
		is.Refused = errors.New(why)
	}
	return is
}

// asked are the annotations by which people ask for something.
var asked = []string{v1alpha1.CancelAnnotation, v1alpha1.RetryNowAnnotation, v1alpha1.ResetAnnotation}

// StripProvision keeps what a decision is made from: what was done of each step is read again by whoever
// does it. Of conditions it is the one that does not follow from the rest of the status.
func StripProvision(p *v1alpha1.Provision) {
	annotations, wanted := p.Annotations, WantedOf(p)
	p.TypeMeta, p.ObjectMeta = metav1.TypeMeta{}, Identity(p.ObjectMeta, nil)
	keep := func(name, value string) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[name] = value
	}
	if wanted.Job != "" {
		keep(cachedJob, once.Text(wanted.Job)) // many have the same steps
	}
	for _, name := range asked {
		if value, is := annotations[name]; is {
			keep(name, cutRequest(value))
		}
	}
	if wanted.Refused != nil {
		keep(cachedRefusal, wanted.Refused.Error())
	}
	p.Annotations = sameAnnotations(p.Annotations)
	p.Spec.Steps = nil
	s := &p.Status
	s.Steps, s.State = nil, once.Text(s.State)
	s.Policy = samePolicy(s.Policy)
	var kept []metav1.Condition
	if accepted := meta.FindStatusCondition(s.Conditions, v1alpha1.ProvisionAccepted); accepted != nil {
		accepted.Type, accepted.Reason, accepted.Message = once.Text(accepted.Type), once.Text(accepted.Reason), once.Text(accepted.Message)
		accepted.Status = once.Text(accepted.Status)
		kept = []metav1.Condition{*accepted}
	}
	s.Conditions = kept
}

// lastAnnotations are the annotations that were kept last.
var lastAnnotations atomic.Pointer[map[string]string]

// sameAnnotations returns equal annotations, shared with other Provisions where it can.
func sameAnnotations(of map[string]string) map[string]string {
	if last := lastAnnotations.Load(); last != nil && maps.Equal(*last, of) {
		return *last
	}
	lastAnnotations.Store(&of)
	return of
}

// lastPolicy is the policy that was seen last, which is that of most others, too.
var lastPolicy atomic.Pointer[[]v1alpha1.PolicyValue]

// samePolicy returns equal values, in the memory of others where it can. Nobody changes what is in a cache.
func samePolicy(values []v1alpha1.PolicyValue) []v1alpha1.PolicyValue {
	if last := lastPolicy.Load(); last != nil && slices.Equal(*last, values) {
		return *last
	}
	values = slices.Clone(values)
	for i := range values {
		v := &values[i]
		v.Name, v.Value, v.From = once.Text(v.Name), once.Text(v.Value), once.Text(v.From)
	}
	lastPolicy.Store(&values)
	return values
}
