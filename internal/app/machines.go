// SPDX-License-Identifier: Apache-2.0

package app

import (
	"time"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic/nicupdate"
	"weir.dev/weir/internal/pool/updater"
)

// machineUpdaterConfig configures the machine updater, without the callback for finished pools.
func machineUpdaterConfig(o Options, cfg config.Config, client *azure.Client, cluster nicupdate.Cluster, lease updater.Lease) nicupdate.Config {
	cfgs := nicupdate.Config{
		Azure: machineClient{azure.NewMachineClient(client), client}, Cluster: cluster, Parallel: cfg.MaxParallelMachines(), Log: o.Log,
		Home: lb.ResourceID{SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.ResourceGroup},
	}
	if lease != nil {
		cfgs.Lease = lease
	}
	return cfgs
}

// machineClient implements nicupdate.Azure.
type machineClient struct {
	*azure.MachineClient
	arm *azure.Client
}

// EnterResource implements nicupdate.Azure.
func (m machineClient) EnterResource(id lb.ResourceID) (until time.Time, reason string) {
	return m.arm.EnterResource(id)
}
