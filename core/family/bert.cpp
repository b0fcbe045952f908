// BERT. The heads follow from the architecture: BertForPreTraining has both; BertModel has none, but is trained with both, so it gets both;
// BertForMaskedLM has no pooler.
#include <algorithm>

#include "core/family/family_config.h"

namespace foreshard {

static Transformer read_bert(const FamilyConfig& config) {
  const std::string architecture = config.architecture();
  const Names known = {"", "BertModel", "BertForPreTraining", "BertForMaskedLM"};
  if (std::find(known.begin(), known.end(), architecture) == known.end())
    FamilyConfig::refuse(config.json().at("architectures").at(0),
                         "\"BertForPreTraining\", \"BertForMaskedLM\" or \"BertModel\"");
  if (const auto decoder = config.find("is_decoder"); decoder && decoder->as_bool()) FamilyConfig::refuse(*decoder, "false");
  if (const auto kind = config.find("position_embedding_type"); kind && kind->as_string() != "absolute")
    FamilyConfig::refuse(*kind, "\"absolute\"");
  Transformer t = config.sizes();
  t.causal = false;
  t.ffn_hidden = config.size({"intermediate_size"});
  t.token_types = config.size_or({"type_vocab_size"}, 2, 0);
  t.activation = config.activation("hidden_act", "gelu", false);
  t.block.norm_eps = config.number("layer_norm_eps", 1e-12, 1);
  t.tied_embeddings = config.flag("tie_word_embeddings", true);
  t.post_norm = t.embedding_norm = true;
  t.final_norm = false;
  t.mlm_head = t.lm_head_bias = true;
  t.pooler = architecture != "BertForMaskedLM";
  return t;
}

ModelFamily bert_family() { return {.types = {"bert"}, .read = read_bert}; }

}  // namespace foreshard
