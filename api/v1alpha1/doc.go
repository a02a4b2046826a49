// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 contains Weir's API types.
//
// +kubebuilder:object:generate=true
// +groupName=weir.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of all kinds here.
var GroupVersion = schema.GroupVersion{Group: "weir.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &BackendPool{}, &BackendPoolList{},
		&Partner{}, &PartnerList{}, &ProvisioningPolicy{}, &ProvisioningPolicyList{}, &Provision{}, &ProvisionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
