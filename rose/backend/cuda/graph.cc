#include "rose/backend/cuda/graph.h"

#include <memory>
#include <vector>

#include "rose/backend/cuda/cuda_check.h"

namespace bouquet::rose::cuda {

namespace {

Status ReadStatus(cudaError_t error) {
  return CudaStatus(error, "a captured step could not be read");
}
Status ChangeStatus(cudaError_t error) {
  return CudaStatus(error, "a captured step could not be changed");
}

/// All that `read` (cudaGraphGetNodes, cudaGraphGetRootNodes) tells of a graph.
template <class Read>
Result<std::vector<cudaGraphNode_t>> NodesOf(cudaGraph_t graph, Read read) {
  size_t count = 0;
  RETURN_IF_ERROR(ReadStatus(read(graph, nullptr, &count)));
  std::vector<cudaGraphNode_t> nodes(count);
  RETURN_IF_ERROR(ReadStatus(read(graph, nodes.data(), &count)));
  return nodes;
}

Result<bool> ClearsWithin(cudaGraphNode_t node, const ClearedMemory& cleared) {
  cudaGraphNodeType type{};
  RETURN_IF_ERROR(ReadStatus(cudaGraphNodeGetType(node, &type)));
  if (type != cudaGraphNodeTypeMemset) {
    return false;
  }
  cudaMemsetParams params{};
  RETURN_IF_ERROR(ReadStatus(cudaGraphMemsetNodeGetParams(node, &params)));
  const auto* first = static_cast<const std::byte*>(params.dst);
  return params.value == 0 && params.height == 1 && first >= cleared.data &&
         first + params.width * params.elementSize <= cleared.data + cleared.bytes;
}

/// The nodes on one side of `node`.
template <class Read>
Result<std::vector<cudaGraphNode_t>> Neighbours(cudaGraphNode_t node, Read read) {
  size_t count = 0;
  RETURN_IF_ERROR(ReadStatus(read(node, nullptr, nullptr, &count)));
  std::vector<cudaGraphNode_t> nodes(count);
  std::vector<cudaGraphEdgeData> edges(count);
  if (count > 0) {
    RETURN_IF_ERROR(ReadStatus(read(node, nodes.data(), edges.data(), &count)));
  }
  return nodes;
}

/// What came after `node` comes after what was before it.
Status Remove(cudaGraph_t graph, cudaGraphNode_t node) {
  using Nodes = std::vector<cudaGraphNode_t>;
  ASSIGN_OR_RETURN(const Nodes before, Neighbours(node, cudaGraphNodeGetDependencies));
  ASSIGN_OR_RETURN(const Nodes after, Neighbours(node, cudaGraphNodeGetDependentNodes));
  RETURN_IF_ERROR(ChangeStatus(cudaGraphDestroyNode(node)));
  for (const cudaGraphNode_t& from : before) {
    for (const cudaGraphNode_t& to : after) {
      RETURN_IF_ERROR(ChangeStatus(cudaGraphAddDependencies(graph, &from, &to, nullptr, 1)));
    }
  }
  return {};
}

Status ClearFirst(cudaGraph_t graph, const ClearedMemory& cleared) {
  ASSIGN_OR_RETURN(const std::vector<cudaGraphNode_t> nodes, NodesOf(graph, cudaGraphGetNodes));
  bool is_needed = false;
  for (const cudaGraphNode_t node : nodes) {
    ASSIGN_OR_RETURN(const bool clears, ClearsWithin(node, cleared));
    if (clears) {
      RETURN_IF_ERROR(Remove(graph, node));
      is_needed = true;
    }
  }
  if (!is_needed) {
    return {};
  }
  ASSIGN_OR_RETURN(const std::vector<cudaGraphNode_t> roots, NodesOf(graph, cudaGraphGetRootNodes));
  cudaMemsetParams params{};
  params.dst = cleared.data;
  params.elementSize = 1;
  params.width = cleared.bytes;
  params.height = 1;
  cudaGraphNode_t first = nullptr;
  RETURN_IF_ERROR(ChangeStatus(cudaGraphAddMemsetNode(&first, graph, nullptr, 0, &params)));
  for (const cudaGraphNode_t& root : roots) {
    RETURN_IF_ERROR(ChangeStatus(cudaGraphAddDependencies(graph, &first, &root, nullptr, 1)));
  }
  return {};
}

}  // namespace

Result<Graph> Graph::Capture(cudaStream_t stream, const std::function<void()>& launches,
                             ClearedMemory cleared) {
  RETURN_IF_ERROR(CudaStatus(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                             "the capture of a step could not begin"));
  launches();
  cudaGraph_t captured = nullptr;
  RETURN_IF_ERROR(
      CudaStatus(cudaStreamEndCapture(stream, &captured), "a step could not be captured"));
  const auto destroy = [](cudaGraph_t graph) { cudaGraphDestroy(graph); };
  const std::unique_ptr<CUgraph_st, decltype(destroy)> graph(captured, destroy);
  RETURN_IF_ERROR(ClearFirst(graph.get(), cleared));
  Graph result;
  RETURN_IF_ERROR(ReadStatus(cudaGraphGetNodes(graph.get(), nullptr, &result.num_nodes_)));
  RETURN_IF_ERROR(CudaStatus(cudaGraphInstantiate(&result.exec_, graph.get(), 0),
                             "a captured step could not be instantiated"));
  RETURN_IF_ERROR(
      CudaStatus(cudaGraphUpload(result.exec_, stream), "a captured step could not be uploaded"));
  return result;
}

Graph::~Graph() {
  if (exec_ != nullptr) {
    cudaGraphExecDestroy(exec_);
  }
}

void Graph::Launch(cudaStream_t stream) const { CUDA_CHECK(cudaGraphLaunch(exec_, stream)); }

}  // namespace bouquet::rose::cuda
