#include "rose/backend/cuda/graph.h"

#include "rose/backend/cuda/cuda_check.h"

namespace bouquet::rose::cuda {

Result<Graph> Graph::Capture(cudaStream_t stream, const std::function<void()>& launches) {
  RETURN_IF_ERROR(CudaStatus(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                             "the capture of a step could not begin"));
  launches();
  cudaGraph_t graph = nullptr;
  RETURN_IF_ERROR(CudaStatus(cudaStreamEndCapture(stream, &graph), "a step could not be captured"));
  Graph result;
  Status status = CudaStatus(cudaGraphInstantiate(&result.exec_, graph, 0),
                             "a captured step could not be instantiated");
  if (status.ok()) {
    status =
        CudaStatus(cudaGraphUpload(result.exec_, stream), "a captured step could not be uploaded");
  }
  cudaGraphDestroy(graph);
  RETURN_IF_ERROR(status);
  return result;
}

Graph::~Graph() {
  if (exec_ != nullptr) {
    cudaGraphExecDestroy(exec_);
  }
}

void Graph::Launch(cudaStream_t stream) const { CUDA_CHECK(cudaGraphLaunch(exec_, stream)); }

}  // namespace bouquet::rose::cuda
