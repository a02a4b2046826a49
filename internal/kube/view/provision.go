// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/once"
)

// stripOthers is for kinds that CacheOptions do not name. Provisions are among them, for they need not
// be installed.
func stripOthers() cache.TransformFunc {
	rest, provision := crcache.TransformStripManagedFields(), Strip(StripProvision)
	return func(obj any) (any, error) {
		if _, is := obj.(*v1alpha1.Provision); is {
			return provision(obj)
		}
		return rest(obj)
	}
}

// asked are the annotations by which people ask for something.
var asked = []string{v1alpha1.CancelAnnotation, v1alpha1.RetryNowAnnotation, v1alpha1.ResetAnnotation}

// StripProvision keeps what a decision is made from: what was done of each step is read again by whoever
// does it. Of conditions it is the one that does not follow from the rest of the status.
func StripProvision(p *v1alpha1.Provision) {
	annotations := p.Annotations
	p.TypeMeta, p.ObjectMeta = metav1.TypeMeta{}, Identity(p.ObjectMeta, nil)
	for _, name := range asked {
		if value, is := annotations[name]; is {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[name] = value
		}
	}
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
