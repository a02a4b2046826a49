// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"weir.dev/weir/internal/lb"
)

// maxInterval is one day, in seconds; longer values are mistakes.
const maxInterval = 24 * 60 * 60

// maxRetries is the range of the field in BackendPool status.
const maxRetries = math.MaxInt32

// maxMachines limits ParallelMachines; more would use the subscription's five-minute write quota at once.
const maxMachines = 100

// maxClusters leaves each cluster one write of the quota in five minutes; more are a mistake.
const maxClusters = 1000

// maxValues has the largest values of numeric keys, by lower-case key.
var maxValues = map[string]int{
	"loadbalancerbackendpoolupdateintervalinseconds":      maxInterval,
	"loadbalancerbackendpooldriftrepairintervalinseconds": maxInterval,
	"loadbalancerbackendpoolupdatemaxretries":             maxRetries,
	"loadbalancerbackendpoolupdatewritesharepercent":      100,
	"loadbalancerbackendpoolupdateparallelmachines":       maxMachines,
	"clustersinsubscription":                              maxClusters,
	"maximumloadbalancerrulecount":                        maxRules,
	"clusterservicesharedloadbalancerhealthprobeport":     maxPort,
	"nodeadminstateminavailablepercent":                   100,
	"maximumprivatelinkservicecount":                      maxPrivateLinks,
}

// Azure's rules for names of virtual networks, and of subnets and security groups:
// https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
var (
	vnetRule   = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,62}[0-9A-Za-z_])?$`)
	subnetRule = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,78}[0-9A-Za-z_])?$`)
)

// edgeZone is the type of an extended location in Azure.
const edgeZone = "EdgeZone"

var edgeZoneRule = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// Normalize sets defaults and validates. It sets every pointer except those of identities and selectors. On
// an error, c is unchanged.
func (c *Config) Normalize() error {
	if err := c.validateConfig(); err != nil {
		return err
	}
	seconds, retries, drift := int(c.UpdateInterval().Seconds()), c.RetryCount(), int(c.DriftPeriod().Seconds())
	c.WriteStrategy = c.UpdateStrategy()
	c.NodeAdminStateMinAvailablePercent = new(c.minAvailablePercent())
	c.UseResourceLease, c.EnableNodeAdminState = new(c.IsResourceLeaseEnabled()), new(c.SetsAdminState())
	c.WriteSharePercent = new(int(math.Round(100 * c.totalWriteShare())))
	c.ClustersInSubscription = new(c.clusterCount())
	c.ParallelMachines = new(c.MaxParallelMachines())
	c.IntervalSeconds, c.MaxRetries, c.DriftSeconds = &seconds, &retries, &drift
	c.normalizeLoadBalancers()
	return nil
}

func (c *Config) validateConfig() error {
	switch {
	case c.SubscriptionID == "":
		return errors.New(`key "subscriptionId" is missing: set it to the cluster's subscription`)
	case c.ResourceGroup == "":
		return errors.New(`key "resourceGroup" is missing: set it to the cluster's resource group`)
	case c.NetworkResourceTenantID != "" && (c.NetworkResourceSubscriptionID == "" || c.TenantID == ""):
		return errors.New(`key "networkResourceTenantID" needs "tenantId" and "networkResourceSubscriptionID": set them to the cluster's tenant and to a subscription of the other one`)
	case c.NetworkTenantID() != "" && strings.EqualFold(c.NetworkResourceSubscriptionID, c.SubscriptionID):
		return errors.New(`keys "networkResourceTenantID" and "tenantId" differ, but the subscription is the same: a subscription has one tenant; correct "networkResourceSubscriptionID"`)
	case c.NetworkTenantID() != "" && c.ManagedIdentity() && !c.WorkloadIdentity():
		return errors.New(`key "networkResourceTenantID" cannot be combined with "useManagedIdentityExtension": a managed identity gets tokens of its own tenant only; use workload identity, or "aadClientId" with a secret or a certificate`)
	case (c.ExtendedLocationName != "" || c.ExtendedLocationType != "") && !strings.EqualFold(c.ExtendedLocationType, edgeZone):
		return fmt.Errorf(`key "extendedLocationType" is %q: want %q, with the name of an edge zone in "extendedLocationName", or remove both keys`, c.ExtendedLocationType, edgeZone)
	case c.ExtendedLocationType != "" && !edgeZoneRule.MatchString(c.ExtendedLocationName):
		return fmt.Errorf(`key "extendedLocationName" is %q: want the name of an edge zone, 1 to 64 letters, digits or '-', or remove it and "extendedLocationType"`, c.ExtendedLocationName)
	case c.ExtendedLocationName != "" && len(c.AvailabilityZones) > 0:
		return errors.New(`keys "extendedLocationName" and "availabilityZones" are set: an edge zone has no availability zones; remove one of them`)
	case c.IntervalSeconds != nil && *c.IntervalSeconds > maxInterval:
		return fmt.Errorf(`key "loadBalancerBackendPoolUpdateIntervalInSeconds" is %d: want 1 to %d, or 0 or less for the default of %d`,
			*c.IntervalSeconds, maxInterval, DefaultLoadBalancerBackendPoolUpdateIntervalInSeconds)
	case c.DriftSeconds != nil && *c.DriftSeconds > maxInterval:
		return fmt.Errorf(`key "loadBalancerBackendPoolDriftRepairIntervalInSeconds" is %d: want at most %d, or 0 to turn drift repair off`, *c.DriftSeconds, maxInterval)
	case c.MaxRetries != nil && *c.MaxRetries > maxRetries:
		return fmt.Errorf(`key "loadBalancerBackendPoolUpdateMaxRetries" is %d: want at most %d, or 0 to turn retries off`, *c.MaxRetries, maxRetries)
	case c.WriteSharePercent != nil && (*c.WriteSharePercent < 0 || *c.WriteSharePercent > 100):
		return fmt.Errorf(`key "loadBalancerBackendPoolUpdateWriteSharePercent" is %d: want 0 to 100`, *c.WriteSharePercent)
	case c.ClustersInSubscription != nil && (*c.ClustersInSubscription < 1 || *c.ClustersInSubscription > maxClusters):
		return fmt.Errorf(`key "clustersInSubscription" is %d: want 1 to %d, the number of clusters with Weir in the subscription and region`, *c.ClustersInSubscription, maxClusters)
	case c.ParallelMachines != nil && (*c.ParallelMachines < 1 || *c.ParallelMachines > maxMachines):
		return fmt.Errorf(`key "loadBalancerBackendPoolUpdateParallelMachines" is %d: want 1 to %d`, *c.ParallelMachines, maxMachines)
	case !c.UpdateStrategy().IsValid():
		return fmt.Errorf(`key "loadBalancerWriteStrategy" is %q: want "auto" or "serial", or remove the key for "auto"`, c.WriteStrategy)
	case c.VnetName != "" && !vnetRule.MatchString(c.VnetName):
		return fmt.Errorf(`key "vnetName" is %q: want 1 to 64 letters, digits, '_', '-' or '.'`, c.VnetName)
	case c.SecurityGroupName != "" && !subnetRule.MatchString(c.SecurityGroupName):
		return fmt.Errorf(`key "securityGroupName" is %q: want 1 to 80 letters, digits, '_', '-' or '.'`, c.SecurityGroupName)
	case c.SubnetName != "" && !subnetRule.MatchString(c.SubnetName):
		return fmt.Errorf(`key "subnetName" is %q: want 1 to 80 letters, digits, '_', '-' or '.'`, c.SubnetName)
	}
	// Validate every pair that becomes part of an ARM ID.
	for _, pair := range []struct{ subscriptionKey, subscription, groupKey, group string }{
		{"subscriptionId", c.SubscriptionID, "resourceGroup", c.ResourceGroup},
		{"networkResourceSubscriptionID", c.NetworkResourceSubscriptionID, "vnetResourceGroup", c.VnetResourceGroup},
		{"", "", "loadBalancerResourceGroup", c.LoadBalancerResourceGroup},
		{"", "", "securityGroupResourceGroup", c.SecurityGroupResourceGroup},
	} {
		id := lb.LoadBalancerID{SubscriptionID: firstNonEmpty(pair.subscription, "s"), ResourceGroup: "g", Name: "n"}
		if err := id.Validate(); err != nil {
			return fmt.Errorf("key %q: %w", pair.subscriptionKey, err)
		}
		id.ResourceGroup = firstNonEmpty(pair.group, "g")
		if err := id.Validate(); err != nil {
			return fmt.Errorf("key %q: %w", pair.groupKey, err)
		}
	}
	return cmp.Or(c.checkTags(), c.validateLoadBalancers(), c.validatePrivateLinks(), c.validateAdminState())
}
