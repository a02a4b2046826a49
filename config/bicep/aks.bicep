// What Weir needs in Azure beside an AKS cluster: a resource group, an identity that the ServiceAccount
// weir-system/weir gets by workload identity, the role Weir on the group, the virtual network and the
// security group of the nodes, and on the subscription its reads of locations and, if wanted, of health. The cluster needs --enable-oidc-issuer and --enable-workload-identity.
targetScope = 'subscription'

@description('A new resource group, for what Weir creates')
param weirResourceGroup string
param clusterName string
param clusterResourceGroup string
@description('ARM ID of the virtual network of the nodes')
param virtualNetworkId string
@description('ARM ID of the security group of the nodes; empty with node resource group lockdown')
param securityGroupId string = ''
@description('Assigns Weir health, too, for --health of weir explain, weir status and weir doctor')
param assignHealthRole bool = false
param location string = deployment().location

var role = loadJsonContent('../azure-role.json')
var subscriptionRole = loadJsonContent('../azure-role-subscription.json')
var healthRole = loadJsonContent('../azure-role-health.json')
var subscriptionRoles = assignHealthRole ? [subscriptionRole, healthRole] : [subscriptionRole]
var scopes = empty(securityGroupId) ? [virtualNetworkId] : [virtualNetworkId, securityGroupId]

resource cluster 'Microsoft.ContainerService/managedClusters@2024-09-01' existing = {
  name: clusterName
  scope: resourceGroup(clusterResourceGroup)
}

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: weirResourceGroup
  location: location
}

resource definition 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(subscription().id, role.Name)
  properties: {
    roleName: role.Name
    description: role.Description
    type: 'CustomRole'
    permissions: [
      {
        actions: role.Actions
        notActions: role.NotActions
      }
    ]
    assignableScopes: [subscription().id]
  }
}

resource subscriptionDefinitions 'Microsoft.Authorization/roleDefinitions@2022-04-01' = [for one in subscriptionRoles: {
  name: guid(subscription().id, one.Name)
  properties: {
    roleName: one.Name
    description: one.Description
    type: 'CustomRole'
    permissions: [
      {
        actions: one.Actions
        notActions: one.NotActions
      }
    ]
    assignableScopes: [subscription().id]
  }
}]

resource onSubscription 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for (one, i) in subscriptionRoles: {
  name: guid(subscription().id, weirResourceGroup, one.Name)
  properties: {
    principalId: identity.outputs.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionDefinitions[i].id
  }
}]

module identity 'identity.bicep' = {
  name: 'weir-identity'
  scope: group
  params: {
    location: location
    issuer: cluster.properties.oidcIssuerProfile.issuerURL
    roleDefinitionId: definition.id
  }
}

module access 'access.bicep' = [for id in scopes: {
  name: 'weir-access-${uniqueString(id)}'
  scope: resourceGroup(split(id, '/')[2], split(id, '/')[4])
  params: {
    id: id
    principalId: identity.outputs.principalId
    roleDefinitionId: definition.id
  }
}]

@description('aadClientId of azure.json, and the annotation azure.workload.identity/client-id')
output clientId string = identity.outputs.clientId
