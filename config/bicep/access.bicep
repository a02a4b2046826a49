// Weir's role on a virtual network or a network security group.
param id string
param principalId string
param roleDefinitionId string

var isNetwork = toLower(split(id, '/')[7]) == 'virtualnetworks'
var name = last(split(id, '/'))

resource network 'Microsoft.Network/virtualNetworks@2024-05-01' existing = if (isNetwork) {
  name: name
}

resource securityGroup 'Microsoft.Network/networkSecurityGroups@2024-05-01' existing = if (!isNetwork) {
  name: name
}

resource onNetwork 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (isNetwork) {
  name: guid(id, principalId, roleDefinitionId)
  scope: network
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleDefinitionId
  }
}

resource onSecurityGroup 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!isNetwork) {
  name: guid(id, principalId, roleDefinitionId)
  scope: securityGroup
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleDefinitionId
  }
}
