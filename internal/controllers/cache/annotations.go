// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"

	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

// The condition types that report the progress of a Service.
const (
	ConditionAccepted   = servicelb.TypeAccepted
	ConditionProgrammed = servicelb.TypeProgrammed
	// ConditionSecurityGroup is the condition type of a public Service for which Weir opens no security group.
	ConditionSecurityGroup = servicelb.TypeSecurityGroup
)

// AllowRemovalAnnotation allows removing the Service's addresses, however many other Services would lose
// theirs.
const AllowRemovalAnnotation = servicelb.AllowRemovalAnnotation

const azureAnnotations = "service.beta.kubernetes.io/"

// weirAnnotations are Weir's annotations kept in the cache.
var weirAnnotations = append([]string{metadata.PlaceAnnotation, metadata.GroupsAnnotation, metadata.LinkGroupsAnnotation, metadata.ClassAnnotation, AllowRemovalAnnotation, metadata.DryRunAnnotation, metadata.WriteAgainAnnotation}, service.WeirAnnotations...)

func isWeirAnnotation(name string) bool { return slices.Contains(weirAnnotations, name) }
